// Package dispatch runs the loops of a scheduler: it turns due manifests into runs, sends the messages of runs, and
// repairs lost and late ones. It reads and writes the tables manifest, manifest_group, run and run_attempt; package
// scheduler writes the declarations of users and the changes of operators, and internal/base/plan computes due times.
//
// # Promise
//
// However many servers run an [Engine], and whatever crashes, sleeps or changes its clock, a manifest has at most one
// run for each due time. The state of a run, its attempt and its message commit together.
//
// Two unique indexes keep that promise: one scheduled entry of a manifest, one run of a due time. Two more guards
// only save work. A lease decides which server evaluates, and an advisory lock keeps a second cycle from running
// beside the first. Even without both of them no run is doubled.
//
// # The loops
//
//	evaluate   the holder of the lease: load what is due, end runs that took too long, decide, queue runs
//	reconcile  the holder of the lease, every minute: lost attempts, followers whose parent succeeded, orphans
//	dispatch   every server: claim queued runs with SKIP LOCKED, send their messages, mark them active
//	clean up   every server: delete runs that ended long ago, in bounded steps
//	listen     every server, unless PollOnly: wake a loop when a different server has work for it
//
// A cycle of evaluate is one transaction, and so is each dispatch. They do not run users' code, except that dispatch
// calls the Sender.
//
// # States of a run
//
//	waiting → queued → active → succeeded | cancelled | timed_out
//	                   active → waiting (a failed attempt, while there are retries) → queued …
//	                   active → dead → queued (an operator retries it) | cancelled
//
// # Failures
//
// A manifest that cannot be evaluated is logged, and this server skips it for a minute; the other manifests continue.
// A message that cannot be sent is tried again after a pause, and after MaxDispatchAttempts its run is dead. The
// transaction of a server that dies is rolled back. A run whose handler stops sending heartbeats is lost: it is sent
// again as its next attempt, and the lost attempt can no longer commit.
package dispatch
