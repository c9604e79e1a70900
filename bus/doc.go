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
// # Failures
//
// A failing handler is undone and judged by the endpoint's policy; its neighbours in the batch are
// untouched. An instance that somebody else changed takes its messages out of the batch. A lost
// connection loses the batch, and nothing else: the queue still has every message. An error of the
// write that nobody can be blamed for makes the next batches smaller until the culprit stands alone. A
// process that dies makes its endpoints careful for ten minutes, and a message with which MaxCrashes processes died
// a dead letter.
//
// # Log
//
// Texts and keys stay as they are, so that alerts may name them. Warn means that somebody should look.
//
//	Info   edda: endpoint started                 endpoint, concurrency
//	Info   edda: endpoint stopped                 endpoint, error (nil after a clean drain)
//	Warn   edda: message dead-lettered            endpoint, message_id, kind, attempt, saga, key, reason, error
//	Info   edda: message discarded                endpoint, message_id, kind, attempt, saga, key, reason
//	Debug  edda: message retried                  endpoint, message_id, kind, attempt, saga, key, delay, error
//	Debug  edda: message conflicted               endpoint, message_id, kind, attempt, saga, key
//	Warn   edda: messages wait for a newer program  endpoint, message_id, kind, error
//	Warn   edda: a batch was rolled back          endpoint, error
//	Warn   edda: listening for wake-ups was interrupted, polling goes on  error
//	Warn   edda: old rows were not deleted        table, error
//	Warn   edda: a process died                   session, host, pid, endpoints (said by one of those who see it)
//	Warn   edda: careful mode                     endpoint, until
//	Info   edda: careful mode ended               endpoint
//	Warn   edda: the session was not renewed      session, error (after 15 s others take this process for dead)
//	Warn   edda: the session was not ended, which will look like a death  session, error
//	Debug  edda: unlock the session, edda: look for dead processes  error (others see a death too much, or later)
//	Debug  edda: leave the crash ledger           endpoint, error (of a batch that was rolled back)
//	Debug  edda: rollback, edda: next due message endpoint, error (of a connection that is lost anyway)
//	Debug  edda: notify                           error (the poll finds the messages)
//
// What concerns a message is logged after the commit that made it true, and bodies never. saga and key are there
// when the message was for an instance.
//
// Reading order: process.go is one batch from top to bottom; one line up is worker.go, one line down is
// saga.Session. Then take.go, load.go, step.go, write.go in the order a batch passes them; send.go for
// what callers do; raw.go and sendraw.go for bridges, which have bytes and no Go types; queues.go, peek.go and
// instances.go for tools that look on. session.go, careful.go and ledger.go are for messages that kill the process.
package bus
