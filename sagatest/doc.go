// Package sagatest runs a saga definition in memory, with a clock of its own. It links the standard library
// and saga only: no Postgres, and nothing else in a user's test binary.
//
// # Promise
//
// A [Run] steps messages with the same sessions as the bus does. Message bodies, state, pending timeouts and
// originators go through their encoding before and after every step, so a field that would be lost in the
// database is lost here. Ids and times count from a fixed beginning, so a run prints the same story every time.
//
//	run := sagatest.New(t, Orders)
//	err := run.Deliver(PlaceOrder{OrderID: "7"})        // the step's error
//	err = run.Reply(ReserveStock{OrderID: "7"}, Reserved{})
//	err = run.Advance(24 * time.Hour)                   // fires what falls due
//	run.Sent(), run.Live("7"), sagatest.State[Order](run, "7")
//
// # What differs from the bus
//
// Every message is a batch of its own, and there is one worker, so there are no conflicts. No policy retries:
// the error of a step is returned to the test, which may deliver again. What the saga sends is collected for
// [Run.Sent] and delivered to nobody; answer it with [Run.Reply]. A timeout that was cancelled is left in the
// queue and discarded when it fires, which is what the bus does at worst.
//
// # Failures
//
// [New] fails the test when the definition has a fault. A step's failure is a returned error; a message that
// finds no instance and is not discarded for it is [ErrMissing]; misuse of the Run itself fails the test.
//
// Read run.go, then transcript.go for tests written as text. [Store] is the in-memory store below both; it
// cannot be given to an endpoint.
package sagatest
