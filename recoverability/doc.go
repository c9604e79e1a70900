// Package recoverability decides about messages that failed. It has no counter, no clock and no table: the attempt is
// in the message's row, so ten processes make as many attempts as one.
//
//	never := recoverability.Always(recoverability.DeadLetter())
//	policy, err := recoverability.Choose(recoverability.DefaultRetries(), recoverability.OnError(errNoMoney, never))
//	e, err := bus.NewEndpoint(b, "payments", bus.EndpointOptions{Policy: policy}, parts...)
//
// # Promise
//
// A [Policy] is a function from a [Failure] to a [Decision], and is called by many goroutines at once. [Default]
// makes at most 24 attempts: an attempt with five immediate retries, then three delays of 10, 20 and 30 seconds (± 10
// %), each followed by a further attempt with its five retries. [Retries] has these numbers as fields, [Choose] gives
// errors and kinds policies of their own, and [Budget] bounds the retries of a process. The attempt number determines
// the position in this series. The jitter is computed from the message id and the attempt, so computing a decision
// again gives the same result.
//
// # States of a message
//
//	handled ◀── attempt ──▶ failed ──policy──▶ retry now ──▶ attempt
//	                                       ├─▶ retry in d ─▶ attempt
//	                                       ├─▶ dead letter   (kept, with bytes and error)
//	                                       ├─▶ discarded     (a row with the reason)
//	                                       └─▶ the endpoint pauses, the message waits
//
// A conflict is a save that lost against another transaction. It is not a failure. When the budget of conflicts is
// spent, the policy for conflicts decides; without one the conflict counts as a failure.
//
// A policy that panics, or returns no decision, does not lose the message: [Resolve] returns a dead letter, with the
// reason in Verdict.Err. Errors of the framework (deadlocks, lost connections, shutdown) never reach a policy, and
// neither do conflicts within their budget. A constructor with wrong values returns an error that lists every fault.
//
// Package deadletter stores dead letters.
package recoverability
