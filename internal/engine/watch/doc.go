// Package watch follows saga instances for readers in this process, such as pages.
//
// # Promise
//
// A Viewer sees what is there when it joins, or what is newer than the version that it names, and then each newer
// version until the instance is complete. A slow reader gets the newest version and not every one.
//
// However many viewers there are, a Set asks the database with one statement, which locks nothing and returns nothing
// while nothing changes. It asks again after 250 ms, after up to a second for an instance that rests, and at once when
// this process committed a change of it (Changed) or when messages are on their way to its saga (Sent).
//
// # States of a topic
//
// A topic is an instance that is watched. It is urgent (the next look reads it) or it waits until its time has come.
// The first viewer of a Set starts the loop that looks; the last one to leave stops it and waits for its end.
//
// # Failures
//
// While the database is away, viewers wait; the loop tries again with a growing pause. An error that time does not
// cure (a missing schema, a missing grant) ends each viewer with that error.
package watch
