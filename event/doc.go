// Package event has what Edda reports about messages, batches and relays, for graphs and for people.
//
// # Promise
//
// An event is emitted after the commit that makes it true, by the worker that committed. The events of a batch are
// emitted together, before the worker takes again: first the attempts that failed and were repeated within the batch,
// then what became of each message, in the order of the batch, then BatchDone. Info.Kind of an event is legible: a kind
// that is no name (saga.CheckName), which a stranger can write, is escaped and cut.
//
// # States
//
// None. Workers emit at the same time, so a receiver must be safe for concurrent use; while it runs, its worker does
// nothing else.
//
// # Failures
//
// A process that dies between the commit and the call emits nothing, and an event whose commit had an unknown outcome
// is not emitted. So events are no place for effects. A panic of the receiver costs its event and nothing else.
package event
