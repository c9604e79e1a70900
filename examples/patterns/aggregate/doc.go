// Package aggregate collects messages into batches of a number, or of a time: docs/patterns/aggregate.md.
package aggregate
