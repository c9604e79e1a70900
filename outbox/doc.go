// Package outbox carries messages across the border of the database: out of it with relays, into it with Ingest.
//
//	relay, err := bus.NewRelay(b, "broker", outbox.RelayOptions{}, forward, "order.paid") // forward is a Forward
//	_, err = b.Ingest(ctx, outbox.IngestOptions{From: "partner"}, messages...)            // each id of a source once
//	fresh, err := b.InboxTx(ctx, tx, "partner", id)                                       // for your own consumers
//
// Programs use it through a bus: bus.NewRelay, Bus.Ingest and Bus.InboxTx. Operators use its copies of relayed
// messages through package operate.
//
// # Promise
//
// A Relay gives the messages of its queue to the other side in order, each at least once and with its id. It deletes
// a message only after the other side has accepted it, and only while it holds the lease. The messages of a
// transaction are relayed before messages that were written after its commit. See docs/guide/outbox.md.
//
// Ingest puts a message from a foreign system into the queues once for each id of its source, for as long as the
// inbox keeps the id. Input that cannot be a message becomes a dead letter, once. See docs/guide/inbox.md.
//
// # States
//
// A message of a relay is left in the queue, relayed, dead or discarded. One pass of a relay reads the head of the
// queue, forwards its messages, and finishes the messages whose fate is decided:
//
//	look.go ──▶ forward.go ──▶ finish.go
//	head.go     search.go      report.go
//	            stuck.go
//
// An id of the inbox is unknown, claimed by an open transaction, or recorded. A transaction that claims an id which
// is already claimed waits for the end of the other transaction, because that end decides whether the id is new. So a
// transaction claims in the order of the ids, before it changes any row.
//
// Ids of the inbox and copies of relayed messages are in rings of four partitions. A claim of the inbox keeps its
// ring from rotating while its transaction is open.
//
//	slot that is written into ──a rotation──▶ kept ──▶ kept ──▶ emptied by a rotation, and written into again
//
// # Failures
//
// If the other side does not accept a message, it is retried, and all messages behind it wait. It becomes a dead
// letter only while the other side accepts other messages. If this database refuses a finish, the relay finishes
// fewer messages at a time, and does not relay any of them a second time. While the database is away, relays wait.
//
// In a transaction that is repeatable read or serializable, an id that was recorded after the snapshot is the error
// 40001 of Postgres. The caller's own transaction may use any connection, also through PgBouncer and in each of pgx's
// modes, so its statements take plain text and bytea arrays.
//
// The package owns the tables inbox and outbox, and the functions received and inbox_id.
package outbox
