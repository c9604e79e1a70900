// Package dedup remembers the ids that callers chose for their messages, so that each is sent once. It owns the table
// sent_id; no other package names that table in Go.
//
// # Promise
//
// Of all transactions that claim one id, exactly one that commits finds it Fresh; every other finds a Duplicate, or a
// Conflict when its content differs, for as long as the id is kept. A claim that was rolled back leaves nothing. Ids
// written by the SQL function send and by this package meet each other.
//
// # States of an id
//
// An id is unknown, claimed by an open transaction, or sent. A transaction that claims an id which an open transaction
// has claimed waits for the end of that one: only then is the answer known. Therefore claims come directly after the
// starts of sagas, before anything that changes a row, and in the order of the ids.
//
// # Failures
//
// An error is always an error of the connection or of the schema. In a transaction that is repeatable read or
// serializable, an id that was sent after the transaction's snapshot is the error 40001 of Postgres.
//
// The caller's own transaction may come from any connection, also through PgBouncer and in each of pgx's modes, so the
// statements take plain text and bytea arrays.
package dedup
