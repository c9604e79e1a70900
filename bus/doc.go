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
// write that nobody can be blamed for makes the next batches smaller until the culprit stands alone.
//
// Reading order: process.go is one batch from top to bottom; one line up is worker.go, one line down is
// saga.Session. Then take.go, load.go, step.go, write.go in the order a batch passes them; send.go for
// what callers do.
package bus
