// Package event has the events that Edda reports about messages, batches and relays, for metrics and for operators,
// and the type that describes one transaction to Around of bus.Options.
//
// # Promise
//
// An event is emitted after the commit that makes it true, by the worker that committed. The events of a batch are
// emitted together, before the worker takes more messages: first the attempts that failed and were repeated within
// the batch, then the fate of each message, in the order of the batch, then BatchDone. Info.Kind of an event is
// printable: a kind that is not a valid name (saga.CheckName) is escaped and cut.
//
// # States
//
// Events have no states. Workers emit at the same time, so a receiver must be safe for concurrent use. While it runs,
// its worker does nothing else.
//
// # Failures
//
// A process that crashes between the commit and the call emits nothing, and after a commit with an unknown outcome no
// event is emitted. So do not put effects into a receiver. If a receiver panics, only that event is lost.
package event
