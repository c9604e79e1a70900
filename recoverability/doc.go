// Package recoverability decides what happens to a message that failed. It has no counter, no clock and no table: the
// attempt is in the message's row, so ten processes make as many attempts as one.
//
//	never := recoverability.Always(recoverability.DeadLetter())
//	policy, err := recoverability.Choose(recoverability.Standard(), recoverability.OnError(errNoMoney, never))
//	e, err := bus.NewEndpoint(b, "payments", bus.EndpointOptions{Policy: policy}, parts...)
//
// # Promise
//
// A [Policy] is a function from a [Failure] to a [Decision], and is called by many goroutines at once. [Default] makes
// at most 24 attempts: five immediate retries after the first attempt, then three delays of 10, 20 and 30 seconds (± 10
// %), each followed by another attempt with its five retries. [Retries] has these numbers as fields, [Choose] gives
// errors and kinds policies of their own, and [Budget] bounds the retries of a process. The attempt number is the
// position in the series. The jitter is computed from the message id and the attempt, so a decision that is computed
// again is the same.
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
// # Failures
//
// A policy that panics, or returns no decision, does not lose the message: [Resolve] returns a dead letter, with the
// reason in Verdict.Err. Errors of the framework (deadlocks, lost connections, shutdown) never reach a policy, and
// neither do conflicts within their budget. The constructor of a wrong policy returns an error with every fault.
//
// Package deadletter has the store of dead letters.
package recoverability
