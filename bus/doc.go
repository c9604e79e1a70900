// Package bus moves messages between endpoints, in Postgres.
//
// # Promise
//
// Once Send or Publish returned nil, or the caller's transaction with the send in it committed, the
// message ends in exactly one place: handled, dead-lettered, or discarded with a reason. Consuming a
// message, the change of its saga, what it sends and what its handler wrote through its transaction
// commit together or not at all.
//
// # The unit of work is the batch
//
// A worker takes up to BatchMax messages in one transaction and keeps it open: the row lock is the claim,
// so a crash gives the messages back at once. It loads the instances they are for, steps each message in
// order, and writes everything in one commit. The message is deleted in the transaction that holds its
// effects, and by that transaction only.
//
// # States of a message in a batch
//
// A taken message meets one fate: done, retried (written again with a later due), dead, discarded, or
// left. Left means that nothing is known against it: its instance is in another worker's hands, somebody
// else changed the instance first, or the batch's time is over. It stays in the queue as it is.
//
// # Leased endpoints
//
// Handlers that take long or talk to others (Handle) run with no transaction open. Their endpoint claims a message by
// moving its due to the end of a lease, extends that while the handler runs, and ends the message in one transaction
// that holds what the handler sent, where the claim still stands. A claim that was lost, because the process died or
// was paused or the database was away for a lease, leaves nothing behind but the effects that the handler had
// elsewhere: the message is due again by itself, and the old claim can neither be extended nor finished.
//
// An ordered endpoint (EndpointOptions.Ordered) handles at most one message of a key at a time, in the cluster. The
// right to a key is a lane: a row with an owner and the end of its lease. A message that comes to the head while its
// lane is somebody else's is parked in a table of its own, and comes back when the lane is free. Claims of such an
// endpoint go one after another; that is what makes the order hold. When the lease of a lane ends, what its owner had
// claimed goes back before everything that is parked.
//
// # Partitioned endpoints
//
// NewPartitioned makes an endpoint of several queues. A distributor moves what arrives to the queue of its key; each
// partition is consumed by one process at a time, one batch after another. The right to a partition is a lease, and
// every batch of it is guarded by the lease's term in its own transaction: it fails when a later term has begun, and
// none begins while it is open. So messages of a key are handled in order and without conflicts while processes come,
// go and die; a failing message is overtaken while it waits for its retry, as everywhere. Processes share the
// partitions evenly without a leader, see internal/partition.
//
// # Relays
//
// NewRelay makes a queue that leads out of the database, and Ingest is the way in: see package outbox. A relay that
// fails keeps its messages and their order; only a message that is refused while others go through is given up.
//
// # Runs
//
// A message that a manifest emitted (saga.Info.Fire) belongs to a run, and the transaction that ends the message ends
// the run, with the same outcome: succeeded, failed, dead (no attempt could succeed), discarded or cancelled. It is
// checked before anything is handled, and a message whose run is over is discarded. Such a message is never a dead
// letter, for its run is; one whose run does not exist is. A message that starts a saga instance leaves its run open
// until the instance completes. A leased handler gives signs of life for its run, and is cancelled when that is over;
// what it sent is not written then. The scheduler's tables are not known here: see the functions run_check, run_beat,
// run_rest and run_end of the migrations. Programs that take messages in SQL (take, done) call them themselves, with
// the headers edda-run and edda-run-attempt.
//
// # Failures
//
// A failing handler is undone and judged by the endpoint's policy; its neighbours in the batch are untouched. An
// instance that somebody else changed takes its messages out of the batch. A lost connection loses the batch, and
// nothing else: the queue still has every message. An error of the write that nobody can be blamed for makes the next
// batches smaller until the culprit stands alone. Where it could be the database's as well, it counts only at the sixth
// time in a row, and only if the failure itself can be written. A process that dies puts its endpoints into quarantine
// for ten minutes, and a message with which MaxCrashes processes died a dead letter. While nothing at all succeeds the
// endpoint tries one message at a time; docs/operate/recoverability.md has the whole way of a failure.
//
// The default lease is 15 s: of a leased message, a partition, a relay, the session of a process, and the scheduler. So
// long after a crash another process continues.
//
// # Log
//
// Texts and keys stay as they are, so that alerts may name them: docs/reference/log.md lists them, with what to do.
package bus
