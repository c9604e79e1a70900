// Package batch is the engine of handlers that run inside a transaction: sagas, HandleTx and HandleRaw.
//
// An [Engine] is one Run of an endpoint. Its workers process one batch after another, each in one transaction;
// process.go has the steps of a batch from top to bottom:
//
//	take     locks messages that are due, up to a number and a size
//	journal  enters them into the in-flight journal, while the queue is in quarantine
//	decode   finds the handler of each, or decides its fate (internal/engine/message)
//	load     reads the saga instances that the messages are for, each once
//	step     calls the handlers, in order and in memory
//	save     writes the instances that have changed, each once
//	write    writes the effects, deletes the messages and commits (internal/engine/message)
//
// A [Strategy] says how an endpoint treats decoded messages: the distributor of a partitioned endpoint moves them to
// the queues of partitions instead of load and step.
//
// A batch that fails is rolled back, and its messages are where they were. The engine then decides whether a message
// is to blame (blame.go) or the database is not available, waits, and takes fewer messages at a time. A message that
// was blamed fails when it is taken again. Run returns an error if a human has to act, and nil after its context has
// ended.
//
// The pump decides when workers take, how much and where in the queue. It is safe for concurrent use; a batch and its
// parts belong to the goroutine of their worker.
package batch
