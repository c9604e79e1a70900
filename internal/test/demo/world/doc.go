// Package world fills a schema with data for the pages: a shop that works, with all that can be wrong in a shop,
// and other states that a schema may be in, such as a million living instances, hostile texts or a database in trouble.
// It is for tests and for "edda demo --world".
//
// # Promise
//
// A world is made when its function returns: every message is where its story wants it. The names, the keys and the
// outcomes are the same each time; ids and times are not.
//
// Reading order: open.go (the names of the worlds), stage.go (shared code), shop.go and story.go, then any other.
package world
