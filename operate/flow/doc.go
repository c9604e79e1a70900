// Package flow reports how messages flow: how many messages each endpoint handles, by the hour and by the minute, and
// which endpoints send which kinds to which endpoints.
//
//	r, err := flow.New(pool, "edda")
//	paces, err := r.Pace(ctx)
//	m, err := r.Map(ctx)
//
// Unhandled reports kinds that no program handles although their messages wait.
//
// # Promise
//
// All methods read with a few bounded statements, lock nothing and need only SELECT. Pace reads one row for each saga
// and hour of a day; the last two hours also have counts by the minute. Map reads the subscriptions, and the newest
// 500 transactions of the history. Unhandled reads at most a thousand rows of each queue.
//
// Only the history stores who sends a kind, so Map reports the senders that the history has recorded lately. If the
// history has no sender of a kind that an endpoint subscribes to, Map reports an edge without a sender.
//
// Map.Faults lists the faults that the tables show: an endpoint that no process runs, an event that was published and
// has no subscriber, a message that was sent to an endpoint that no longer exists, and a kind whose messages died in
// an endpoint because the endpoint has no handler for it.
//
// # Failures
//
// Counters are approximate, like operate.SagaCounters. An endpoint that keeps no history, or only a sample of it,
// appears to send less than it does, or nothing.
//
// Reading order: reader.go, pace.go, map.go, fault.go, unhandled.go.
package flow
