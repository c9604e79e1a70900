// Package scheduler stores manifests and emits their messages. A manifest says when which message is sent; one firing
// of it is a run. The package owns the tables manifest, manifest_group, run and run_attempt.
//
// # Promise
//
// However many servers run a scheduler, and whatever crashes, sleeps or changes its clock, a manifest has at most one
// run for each due time, and its message is on the bus if and only if the run says so: the run's state, the attempt and
// the message commit together. With the policy MisfireAll no due time is left out, up to the policy's cap. The run ends
// in the transaction that holds the effects of its handler.
//
// What decides is a pair of unique indexes (an entry of each manifest, a run of each due time). Two more guards keep
// servers from working in vain: a lease says who evaluates, and an advisory lock keeps a second evaluation from running
// beside the first. Without both of them nothing is doubled.
//
// # The four loops
//
//	evaluate   one server, by lease: load what is due, reap what ran out of time, decide, queue runs. One short transaction
//	dispatch   every server: claim queued runs with SKIP LOCKED, send their messages, mark them active. One transaction each
//	reconcile  one server, every minute: lost attempts, followers whose parent succeeded, orphans
//	clean up   every server: runs that ended long ago, in bounded steps
//
// Nothing of this runs a user's code. The message goes to its endpoint, and the bus tells the run how it ended, by
// functions of SQL that the migration named scheduler defines. So the endpoints need not be where the schedulers are.
//
// # States of a run
//
//	waiting → queued → active → succeeded | cancelled | timed_out
//	                   active → waiting (a failed attempt, while there are retries) → queued …
//	                   active → dead → queued (retried by somebody) | cancelled
//
// A manifest is evaluated while it is live (neither paused, nor its group, nor an orphan), has no open scheduled run
// (unless it says Overlap), and no dead one. What falls due meanwhile is judged by its misfire policy when it is
// evaluated again.
//
// # Failures
//
// A manifest that cannot be evaluated is logged and left; others go on. A message that cannot be sent goes back with a
// pause, and after MaxDispatchAttempts its run is dead. A server that dies in the middle of a transaction has done
// nothing. A run whose handler gives no sign of life any more is lost: it is sent again as its next attempt, and the
// lost one can no longer commit.
//
// Reading order: manifest.go for what users write; when.go, decide.go for what is due when; statements.sql,
// evaluate.go, dispatch.go, reconcile.go, clean.go for the loops; scheduler.go for how they run; store.go, sync.go,
// manage.go for changes by people and programs; singleton.go for users' own loops.
package scheduler
