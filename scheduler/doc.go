// Package scheduler stores manifests and sends their messages when they are due. A manifest is a stored schedule:
// which message to send, and when. One firing of a manifest is a run.
//
//	night := scheduler.Cron("30 2 * * *", "Europe/Oslo")
//	nightly := scheduler.Manifest{Name: "nightly", When: night, Message: Settle{}}
//	clock, err := scheduler.New(b, scheduler.Options{Owner: "shop"}, nightly) // b is a bus.Bus
//	err = clock.Run(ctx)                                                      // on each server
//
// # Promise
//
// Any number of servers may run a [Scheduler], also with two releases of a program. Even if servers crash, sleep or
// change their clocks, a manifest has at most one run for each due time. The state of the run, its attempt and its
// message commit together, so the message is on the bus if and only if the run records it. With MisfireAll every missed
// due time fires, up to MisfireUp of them. A run ends in the transaction that commits the effects of its handler.
//
// # Who does what
//
//   - This package is the part for users: manifests, declarations, options, and the [Store], which lists and changes
//     manifests, groups and runs. [Singleton] runs a loop of yours on one server at a time.
//   - internal/engine/dispatch runs the loops: evaluate, dispatch, reconcile, clean up. Its package comment describes
//     how servers share them.
//   - internal/base/plan computes due times, and applies the misfire policy to due times that were missed.
//
// No loop runs a user's code, except that a dispatch calls the [Sender]. The message goes to its endpoint, and the bus
// records the end of the run through SQL functions of the migration named scheduler. So endpoints may run elsewhere.
//
// # States of a run
//
//	waiting → queued → active → succeeded | cancelled | timed_out
//	                   active → waiting (a failed attempt, while there are retries) → queued …
//	                   active → dead → queued (retried by an operator) | cancelled
//
// A manifest is evaluated while it is live (neither it nor its group is paused, and it is not an orphan), has no open
// scheduled run (unless Overlap is set), and has no dead run. When it is evaluated again, its misfire policy decides
// about the due times that have passed.
//
// # Failures
//
// A manifest that cannot be evaluated is logged, and the others continue. A message that cannot be sent is tried
// again after a pause, and after MaxDispatchAttempts its run is dead. If a server crashes during a transaction, the
// transaction has no effect. If the handler of a run gives no sign of life, the attempt is lost: the run is sent
// again as its next attempt, and the lost attempt can no longer commit.
package scheduler
