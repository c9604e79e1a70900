// Package world fills a schema with what the pages are to show: a shop that works, with all that can be wrong in one,
// and other states that a schema may be in, such as a million living instances, hostile texts or a database in trouble.
// It is for tests and for "edda demo --world".
//
// # Promise
//
// A world is made when its function returns: every message is where its story wants it. The names, the keys and the
// outcomes are the same each time; ids and times are not.
//
// Reading order: open.go (the names of the worlds), stage.go (what they share), shop.go and story.go, then any other.
package world
