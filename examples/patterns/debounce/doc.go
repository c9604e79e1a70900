// Package debounce acts once after a burst of messages: docs/patterns/debounce.md.
package debounce
