// Package polling waits for work of another system that does not call back: docs/patterns/polling.md.
package polling
