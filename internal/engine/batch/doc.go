// Package batch is the engine of handlers that run inside a transaction: sagas, HandleTx and HandleRaw.
//
// An [Engine] is one Run of an endpoint. Its workers process one batch after another, each in one transaction;
// process.go is a batch from top to bottom:
//
//	take     locks messages that are due, up to a number and a size
//	journal  enters them into the in-flight journal, while the queue is in quarantine
//	decode   finds the handler of each, or decides its fate (internal/engine/delivery)
//	load     reads the saga instances that the messages are for, each once
//	step     calls the handlers, in order and in memory
//	save     writes the instances that have changed, each once
//	write    writes what follows, deletes the messages and commits (internal/engine/delivery)
//
// What an endpoint does with decoded messages is its [Strategy]: the distributor of a partitioned endpoint moves them
// to the queues of partitions in place of load and step.
//
// A batch that fails is rolled back, and its messages are where they were. The engine then finds out whether a message
// is to blame (blame.go) or the database is away, waits, and takes again, fewer at a time. A message that was blamed
// fails when it is taken again. Run returns an error that needs a human, and nil when its context has ended.
//
// The pump decides when workers take, how much and where in the queue. It is safe for concurrent use; a batch and its
// parts belong to the goroutine of their worker.
package batch
