// Package deadletter keeps the messages that nobody will try again by himself, and the ones that were
// consumed without effect. It owns the tables dead_letter and discarded; no other package names them in SQL.
//
// # Promise
//
// Header and body of a dead letter are kept byte for byte. Each dead letter ends exactly once, retried or
// discarded, however many people and programs try at the same time. Writing one cannot fail on what it
// holds: text that Postgres would refuse is replaced, a long text is cut.
//
// # States of a dead letter
//
//	waiting    a row of dead_letter, listed in the order of its number
//	retried    the row is gone, and in the same transaction the message is back in its queue with its id,
//	           header and body, and with no attempts counted
//	discarded  the row is gone, and a row of discarded says why; the body is gone with it
//
// A message that dies again after a retry is another dead letter with another number.
//
// # Failures
//
// ErrNotFound: there is no dead letter with this number, or somebody else has just ended it. Every other
// error is one of the connection, the schema or the Resender; nothing has changed then, unless the
// connection was lost during the commit: call again, and ErrNotFound says that it had come through.
//
// Texts are stored as they came, control characters included: whoever shows them escapes them.
//
// Reading order: store.go, queue.go, text.go, headers.go, list.go, scan.go, resolve.go, statements.sql.
package deadletter
