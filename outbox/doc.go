// Package outbox carries messages over the border of the database: out by relays, in by Ingest.
//
// Programs reach it through a bus: bus.NewRelay, Bus.Ingest and Bus.InboxTx; operators reach its copies
// through package operate.
//
// # Promise
//
// A Relay gives the messages of its queue to the other side in their order, each at least once and with its id. It
// deletes a message only after the other side has taken it, and only while it holds the lease. A message of one
// transaction is relayed before those that were written after its commit. See docs/guide/outbox.md.
//
// Ingest puts a message from another system into the queues once for each id of its source, for as long as the inbox
// keeps the id. What cannot be a message becomes a dead letter, once. See docs/guide/inbox.md.
//
// # States
//
// A message of a relay is left in the queue, relayed, dead or discarded. One pass of a relay looks at the head of the
// queue, forwards, and finishes what has met its fate:
//
//	look.go ──▶ forward.go ──▶ finish.go
//	head.go     search.go      report.go
//	            stuck.go
//
// An id of the inbox is unknown, claimed by an open transaction, or noted. A transaction that claims an id which an
// open transaction has claimed waits for the end of that one: only then is the answer known. So claims come in the
// order of the ids, before anything that changes a row.
//
// Ids of the inbox and copies of relayed messages are in rings of four partitions. A claim of the inbox keeps its ring
// from rotating while its transaction is open.
//
//	slot that is written into ──a rotation──▶ kept ──▶ kept ──▶ emptied by the rotation that makes it the one again
//
// # Failures
//
// A message that the other side does not take waits, with all behind it, and is tried again; it is a dead letter only
// while others go through. When this database refuses a finish, the relay finishes less at a time, and gives nothing to
// the other side twice for that. While the database is away, relays wait.
//
// An id that was noted after the snapshot of a transaction that is repeatable read or serializable is the error 40001
// of Postgres. The caller's own transaction may come from any connection, also through PgBouncer and in each of pgx's
// modes, so its statements take plain text and bytea arrays.
//
// The package owns the tables inbox, outbox and ring, and the functions received, inbox_id and rotate_ring.
package outbox
