// Package polling waits for work of an external system that does not call back: docs/patterns/polling.md.
package polling
