// Package recoverability decides what happens to a message that failed. It holds no counter, no clock and no
// table: the attempt is in the message's row, so ten processes make the same number of tries as one.
//
// # Promise
//
// A [Policy] is a function from a [Failure] to a [Decision]. [Default] makes at most 24 attempts: five retries at once
// after the first attempt, then three times a delay of 10, 20 and 30 seconds (± 10 %), each followed by another attempt
// with its five retries. [Retries] has these numbers to change, [Choose] gives errors and kinds policies of their own,
// [Budget] bounds the retries of a process. One counter, the attempt number, tells where in that series a message is.
// The jitter is a function of the message id and the attempt, so a decision can be computed again and is the same.
//
// # What a message passes through
//
//	handled ◀── attempt ──▶ failed ──policy──▶ retry now ──▶ attempt
//	                                       ├─▶ retry in d ─▶ attempt
//	                                       ├─▶ dead letter   (kept, with bytes and error)
//	                                       ├─▶ discarded     (a row with the reason)
//	                                       └─▶ the endpoint pauses, the message waits
//
// A conflict, which is a save that came second, is no failure. When its own budget is spent a policy for conflicts is
// asked, or, without one, it counts as a failure.
//
// # Failures
//
// A policy that panics, or returns no decision, does not lose the message: [Resolve] dead-letters it and says
// why in the verdict. Trouble of the framework (deadlocks, lost connections, shutdown) never reaches a policy,
// and neither do conflicts while their own budget lasts. A policy that is put together wrongly is an error of its
// constructor, which names every fault.
//
// Read policy.go, then retries.go for configured numbers, choose.go, conflicts.go, budget.go. The dead-letter store is
// the package deadletter beside this one.
package recoverability
