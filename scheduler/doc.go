// Package scheduler stores manifests and sends their messages when they are due. A manifest says when which message is
// sent; one firing of it is a run.
//
// # Promise
//
// However many servers run a [Scheduler], and whatever crashes, sleeps or changes its clock, a manifest has at most one
// run for each due time, and its message is on the bus if and only if the run says so: the state of the run, the
// attempt and the message commit together. With MisfireAll every due time that was missed fires, up to MisfireUp of
// them. A run ends in the transaction that holds the effects of its handler.
//
// # Who does what
//
//   - This package is what users see: manifests, declarations, options, and the [Store], with which programs and people
//     list and change manifests, groups and runs. [Singleton] runs a loop of yours on one server at a time.
//   - internal/firing runs the loops: evaluate, dispatch, reconcile, clean up. Its package comment says how servers
//     share them.
//   - internal/plan computes due times, and what happens to those that were missed.
//
// No loop runs a user's code, except that a dispatch calls the [Sender]. The message goes to its endpoint, and the bus
// reports the end of the run through SQL functions of the migration named scheduler. So endpoints need not run where
// schedulers run.
//
// # States of a run
//
//	waiting → queued → active → succeeded | cancelled | timed_out
//	                   active → waiting (a failed attempt, while there are retries) → queued …
//	                   active → dead → queued (retried by somebody) | cancelled
//
// A manifest is evaluated while it is live (neither it nor its group is paused, and it is no orphan), has no open
// scheduled run (unless it says Overlap), and has no dead run. When it is evaluated again, its misfire policy decides
// about the due times that passed.
//
// # Failures
//
// A manifest that cannot be evaluated is logged, and the others go on. A message that cannot be sent is tried again
// after a pause, and after MaxDispatchAttempts its run is dead. A server that dies in a transaction has done nothing. A
// run whose handler gives no sign of life is lost: it is sent again as its next attempt, and the lost attempt can no
// longer commit.
package scheduler
