// Package dedup records the ids that callers chose for their messages, so that each is sent once. It owns the table
// sent_id; no other package names that table in Go.
//
// # Promise
//
// Of all transactions that claim one id and commit, exactly one finds it Fresh; every other finds a Duplicate, or a
// Conflict if its content differs, as long as the id is kept. A claim that was rolled back leaves nothing. This holds
// across the SQL function send and this package.
//
// # States of an id
//
// An id is unknown, claimed by an open transaction, or sent. A transaction that claims an id which an open
// transaction has claimed waits for the end of that transaction: only then is the result known. Therefore claims come
// directly after the starts of sagas, before any change of a row, and in the order of the ids.
//
// # Failures
//
// An error is always an error of the connection or of the schema. In a transaction that is repeatable read or
// serializable, an id that was sent after the transaction's snapshot causes the error 40001 of Postgres.
//
// The caller's own transaction may come from any connection, also through PgBouncer and in each of pgx's modes, so the
// statements take plain text and bytea arrays.
package dedup
