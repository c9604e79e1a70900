// Package scheduler stores manifests and sends their messages when they are due. A manifest says when which message is
// sent; one firing of it is a run.
//
//	night := scheduler.Cron("30 2 * * *", "Europe/Oslo")
//	nightly := scheduler.Manifest{Name: "nightly", When: night, Message: Settle{}}
//	clock, err := scheduler.New(b, scheduler.Options{Owner: "shop"}, nightly) // b is a bus.Bus
//	err = clock.Run(ctx)                                                      // on each server
//
// # Promise
//
// Any number of servers may run a [Scheduler], also those of two releases. Even if servers crash, sleep or change their
// clocks, a manifest has at most one run for each due time, and its message is on the bus if and only if the run says
// so: the state of the run, the attempt and the message commit together. With MisfireAll every missed due time fires,
// up to MisfireUp of them. A run ends in the transaction that has the effects of its handler.
//
// # Who does what
//
//   - This package is what users see: manifests, declarations, options, and the [Store], which lists and changes
//     manifests, groups and runs. [Singleton] runs a loop of yours on one server at a time.
//   - internal/engine/firing runs the loops: evaluate, dispatch, reconcile, clean up. Its package comment says how
// servers     share them.
//   - internal/base/plan computes due times, and what happens to those that were missed.
//
// No loop runs a user's code, except that a dispatch calls the [Sender]. The message goes to its endpoint, and the bus
// reports the end of the run through SQL functions of the migration named scheduler. So endpoints need not run where
// schedulers run.
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
// A manifest that cannot be evaluated is logged, and the others continue. A message that cannot be sent is tried again
// after a pause, and after MaxDispatchAttempts its run is dead. If a server crashes during a transaction, the
// transaction has no effect. If the handler of a run gives no sign of life, the attempt is lost: the run is sent again
// as its next attempt, and the lost attempt can no longer commit.
package scheduler
