// Package bus moves messages between endpoints, in Postgres.
//
//	b, err := bus.New(pool, bus.Options{})
//	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders), bus.HandleTx(writeLetter))
//	_, err = b.SendTx(ctx, tx, PlaceOrder{Order: "7"}) // commits with the other writes of tx
//
// # Promise
//
// Once Send or Publish returned nil, or the caller's transaction with the send in it committed, the message ends in
// exactly one place: handled, dead-lettered, or discarded with a reason. The end of the message, the change of its
// saga, the messages that its handler sends and the rows that its handler writes through its transaction commit
// together or not at all.
//
// # The unit of work is the batch
//
// A worker takes up to BatchMax messages in one transaction and keeps it open. The row locks are the claim, so after
// a crash other workers can take the messages at once. The worker loads the saga instances, steps each message in
// order, and writes everything in one commit. A message is deleted only by the transaction that holds its effects.
//
// # States of a message in a batch
//
// A taken message gets one fate: done, retried (written again with a later due time), dead, discarded, or left. A
// message is left without a failed attempt if a second worker has its instance, a concurrent transaction changed the
// instance first, or the batch's time is over. It stays in the queue as it is.
//
// # Leased endpoints
//
// Handlers that take long or call other systems (Handle) run with no transaction open. Their endpoint claims a
// message by moving its due time to the end of a lease, and extends the lease while the handler runs. One transaction
// ends the message and writes the messages that the handler sent, if the claim still holds. A claim is lost if the
// process crashes or stalls, or the database is away, for longer than the lease. The message is then due again, and
// the old claim can neither be extended nor finished. Only the handler's effects outside the database remain.
//
// An ordered endpoint (EndpointOptions.Ordered) handles at most one message of a key at a time, in the cluster. The
// right to a key is a lane: a row with an owner and the end of its lease. A message that comes to the head of the queue
// while a different process owns its lane is parked in a separate table, and comes back when the lane is free. The
// endpoint claims messages in one transaction at a time, which keeps the order. When the lease of a lane ends, its
// owner's messages go back before all parked messages. endpoint claims messages in one transaction at a time, which
// keeps the order. When the lease of a lane ends, its owner's messages go back before everything that is parked.
//
// # Partitioned endpoints
//
// NewPartitioned makes an endpoint of several queues. A distributor moves each message to the queue of its key; one
// process at a time consumes a partition, one batch at a time. The right to a partition is a lease. Each batch checks
// the lease's term in its own transaction: the batch fails if a later term has begun, and no later term begins while
// the batch is open. So messages of a key are handled in order and without conflicts while processes start, stop and
// crash. A failing message is overtaken while it waits for its retry, as everywhere. Processes share the partitions
// evenly without a leader, see internal/engine/partition.
//
// # Relays
//
// NewRelay makes a queue that leads out of the database, and Ingest is the way in: see package outbox. A relay that
// fails keeps its messages and their order. A message becomes a dead letter only if it is refused while others are
// accepted.
//
// # Runs
//
// A message that a manifest emitted (saga.Info.Firing) belongs to a run, and the transaction that ends the message ends
// the run, with the same outcome: succeeded, failed, dead (no attempt could succeed), discarded or cancelled. The run
// is checked before the message is handled, and a message whose run is over is discarded. If such a message fails for
// good, its run is dead and the message becomes a dead letter only if its run does not exist. A message that starts a
// saga instance leaves its run open until the instance completes. While a leased handler runs, its endpoint beats for
// the run. When the run is over the handler is cancelled, and the messages that it sent are not written. This package
// does not use the scheduler's tables: it calls the functions run_check, run_beat, run_rest and run_end of the
// migrations. Programs that take messages in SQL (take, done) call them too, with the headers edda-run and
// edda-run-attempt.
//
// # Failures
//
// When a handler fails, its effects are undone and the endpoint's policy decides; other messages of the batch are not
// affected. When a concurrent transaction has changed an instance, its messages leave the batch. When the connection
// breaks, the batch is rolled back and the queue still has every message. When a write fails and no message can be
// blamed, the next batches are smaller, until the message at fault is alone. An error that the database may have caused
// counts only at the sixth time in a row, and only if the failure itself can be written. When a process crashes, its
// endpoints are in quarantine for ten minutes, and a message that MaxCrashes processes crashed with becomes a dead
// letter. While every message fails the endpoint tries one message at a time. docs/operate/recoverability.md follows a
// failure from its beginning to its end.
//
// The default lease of a leased message, a partition, a relay, the session of a process and the scheduler is 15 s.
// After a crash another process continues when that time has passed.
//
// # Log
//
// docs/reference/log.md lists every line, and how to respond to it. Texts and keys do not change, so alerts may name
// them.
package bus
