// Package gallery is a process that serves the pages of eddaui and has them open, while a benchmark runs on the same
// database.
package gallery
