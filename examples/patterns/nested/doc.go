// Package nested has a saga that starts others and waits for their ends: docs/patterns/saga-of-sagas.md.
package nested
