// Package compensation undoes the steps of a saga that cannot be completed: docs/patterns/compensation.md.
package compensation
