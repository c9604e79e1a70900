// Package flow tells how messages flow: how many each endpoint handles, by the hour and by the minute, and which kinds
// go from where to where.
//
//	r, err := flow.New(pool, "edda")
//	paces, err := r.Pace(ctx)
//	m, err := r.Map(ctx)
//
// Unhandled tells which kinds no program handles, while their messages wait.
//
// # Promise
//
// All read with a few bounded statements, lock nothing and need only SELECT. Pace reads a row for each saga and hour
// of a day; two of them have minutes. Map reads the subscriptions, and the newest 500 transactions of the history.
// Unhandled reads a thousand rows of each queue at most.
//
// What sends a kind is not stored anywhere but in the history, so Map knows those senders that the history has seen
// lately. A kind that an endpoint subscribes to, and that nobody was seen to send, is an edge without a sender.
//
// Map.Faults is what the tables know to be wrong: an endpoint that no process runs, an event that was published and has
// no subscriber, a message that was sent to an endpoint which is gone, and a kind that died in an endpoint because that
// has no handler of it.
//
// # Failures
//
// Counters are approximate, as those of operate.SagaCounters. An endpoint that keeps no history, or a sample of it,
// sends less than it does, or nothing.
//
// Reading order: reader.go, pace.go, map.go, fault.go, unhandled.go.
package flow
