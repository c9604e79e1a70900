// Package outbox guards the border where a message could be written twice. It owns the table sent_id, which
// keeps the ids that callers chose themselves; no other package names that table in Go.
//
// # Promise
//
// Of all transactions that claim one id, exactly one that commits finds it Fresh; every other finds a
// Duplicate, or a Conflict when its content differs, for as long as the id is kept. A claim that was rolled
// back leaves nothing. Ids written by the SQL function send and by this package meet each other.
//
// # States of an id
//
// An id is unknown, claimed by an open transaction, or sent. Whoever claims an id that an open transaction
// has claimed waits for the end of that transaction: only then is the answer known. Therefore claims come
// directly after the starts of sagas, before anything that changes a row, and in the order of the ids.
//
// # Failures
//
// An error is always an error of the connection or of the schema. In a transaction that is repeatable
// read or serializable, an id that was sent after the transaction's snapshot is the error 40001 of Postgres.
//
// The caller's own transaction may come from any connection, also through PgBouncer and in each of pgx's
// modes, so the statements take plain text and bytea arrays.
//
// # The border
//
// It owns the tables inbox, outbox and ring too, and the functions received, inbox_id and rotate_ring. A Reception
// takes the ids of messages that came from another system: of all transactions that take one id of one source, exactly
// one that commits finds it Fresh, for as long as the ring keeps it. Kept are copies of messages that were relayed to
// another system. Both are rings of four partitions:
//
//	slot that is written into ──a turn──▶ kept ──▶ kept ──▶ emptied by the turn that makes it the one again
//
// A Reception keeps the inbox's ring from turning while its transaction is open.
//
// Reading order: claim.go, store.go, statements.sql; for the border ring.go, inbox.go, kept.go and their .sql.
package outbox
