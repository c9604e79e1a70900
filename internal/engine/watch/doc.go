// Package watch follows saga instances for readers in this process, such as pages.
//
// # Promise
//
// A Viewer receives the current version when it joins, or the first one newer than the version that it names, and
// then newer versions until the instance is complete. A slow reader receives the newest version and not every one.
//
// However many viewers there are, a Set queries the database with one statement, which locks nothing and returns no
// rows while nothing changes. It queries again after 250 ms, after up to a second for an instance that has not
// changed for a while, and at once when this process committed a change of it (Changed) or when messages are queued
// for its saga (Sent).
//
// # States of a topic
//
// A topic is an instance that is watched. It is urgent (the next query reads it) or it waits until its time has come.
// The first viewer of a Set starts the loop that queries; the last one to leave stops it and waits for its end.
//
// # Failures
//
// While the database is away, viewers wait; the loop tries again with a growing pause. An error that time does not
// cure (a missing schema, a missing grant) ends each viewer with that error.
package watch
