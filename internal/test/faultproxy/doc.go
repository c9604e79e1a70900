// Package faultproxy stands between a program and Postgres, reads the protocol
// and breaks things at named moments.
//
// # Promise
//
// A statement has the name in its first line, "-- name: take"; begin, commit,
// rollback, savepoint, release and "rollback to" have these names when nothing
// names them. Each time a named statement is executed, in the extended protocol
// (Execute) or the simple one (Query), it passes: it is counted over all
// connections, and the faults for that name and count strike.
//
//   - Before: the server has answered all that this connection sent earlier, its
//     answers were given to the client, and nothing of this execution was forwarded.
//   - After: the server has completed the statement (or refused it) and the client
//     was not told. Nothing that follows in the pipeline was forwarded, with one
//     exception: for the last statement before a Sync, and for a simple Query, the
//     server has answered the Sync too, so what it commits is committed. Rows of
//     the statement may have reached the client, its completion has not.
//
// To keep these promises in a pipeline the proxy sends the server a Flush of
// its own, which changes when answers come and nothing else. A statement the
// server skips, because one before it in the pipeline failed, passes and is
// counted; its After never comes.
//
// A crash test runs once without faults, takes Seen, and walks over it with
// Walk: every statement, every time, before and after. Random breaks by chance,
// and the seed alone decides which passing of which statement.
//
// # States
//
// A connection begins (TLS and GSS encryption are declined), is served by one
// goroutine for each direction, and ends when either side does or a fault cuts
// it. When the client goes, what it sent still reaches the server, as the
// kernel would see to without us.
//
// # Failures
//
// A server that cannot be reached shows as a closed connection. A simple Query
// of several statements passes as one, under the name of its first.
package faultproxy
