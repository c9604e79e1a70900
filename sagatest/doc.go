// Package sagatest runs a saga definition in memory, with its own clock. It imports only the standard library and saga.
//
//	run := sagatest.New(t, Orders)
//	err := run.Deliver(PlaceOrder{OrderID: "7"})        // the step's error
//	err = run.Reply(ReserveStock{OrderID: "7"}, Reserved{})
//	err = run.Advance(24 * time.Hour)                   // fires what falls due
//	run.Sent(), run.Live("7"), sagatest.State[Order](run, "7")
//
// # Promise
//
// A [Run] steps messages with the same sessions as the bus. It encodes and decodes bodies, states, pending timeouts
// and originators around every step, so a field that the database would lose is lost here too. Ids and times count
// from a fixed start, so every run prints the same.
//
// # Differences from the bus
//
// Every message is a batch of its own, and there is one worker, so there are no conflicts. Nothing is retried: the
// test gets the error of a step and may deliver the message again. Messages that the saga sends are collected for
// [Run.Sent] and not delivered; answer them with [Run.Reply]. A cancelled timeout stays in the queue and is discarded
// when it fires, as may happen on the bus.
//
// # Failures
//
// [New] fails the test if the definition has a fault. The failure of a step is returned as an error. For a message
// that finds no instance and is not discarded, the error is [ErrMissing]. Misuse of the Run fails the test.
//
// [Transcript] runs tests that are written as text. [Store] is the in-memory store of a Run; an endpoint cannot use
// it. A Run belongs to one goroutine at a time.
package sagatest
