// Package faultproxy is a proxy between a program and Postgres. It reads the protocol and breaks connections at named
// moments.
//
// # Promise
//
// A statement has the name in its first line, "-- name: take"; without such a line, begin, commit, rollback,
// savepoint, release and "rollback to" have these names. Each execution of a named statement, in the extended
// protocol (Execute) or the simple one (Query), is a passing: it is counted over all connections, and the faults for
// that name and count are performed.
//
//   - Before: the server has answered all earlier requests of this connection, the client has the answers, and
//     nothing of this execution was forwarded.
//   - After: the server has completed the statement (or refused it) and the client was not informed. Nothing that
//     follows in the pipeline was forwarded, with one exception: for the last statement before a Sync, and for a
//     simple Query, the server has answered the Sync too, so a commit has taken effect. Rows of the statement may
//     have reached the client, its completion has not.
//
// To keep these promises in a pipeline the proxy sends the server a Flush of its own, which only changes when answers
// come. A statement that the server skips, because an earlier one in the pipeline failed, passes and is counted; its
// After never comes.
//
// A crash test runs once without faults, reads Seen, and iterates over it with Walk: every statement, every time,
// before and after. Random breaks connections by chance: the seed alone decides which passing of which statement.
//
// # States
//
// A connection begins (TLS and GSS encryption are declined), is served by one goroutine for each direction, and ends
// when either side does or a fault cuts it. If the client goes, the data it sent still reaches the server, as it
// would without the proxy.
//
// # Failures
//
// If a server cannot be reached, the connection is closed. A simple Query of several statements is one passing, under
// the name of its first.
package faultproxy
