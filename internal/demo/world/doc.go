// Package world fills a schema with what the pages are to show: a shop that works, with all that can be wrong in one.
// It is for tests and for examples/ui.
//
// # Promise
//
// Seed returns when every message of the story is where the story wants it. The names, the keys and the outcomes are
// the same each time; ids and times are not.
package world
