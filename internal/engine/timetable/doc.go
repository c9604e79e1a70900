// Package timetable decides about manifests and their runs in memory.
//
// # Promise
//
// A [Table] decides with the same arithmetic as a server (internal/base/plan), and its runs go through the same states:
// retries with their back-off, dead runs that hold their manifest, followers, overlap, timeouts, pauses and misfire
// policies. One suite of scenarios, in package scheduler, is run against it and against Postgres.
//
// What is due fires at that very moment and is dispatched at once: there is no poll, and groups bound nothing. There is
// one process alone, so the table takes neither lock nor lease.
//
// # Failures
//
// [New] returns what is wrong with a manifest. Methods that name a manifest or a run return an error for a name that is
// not known. The methods that end a run report whether it was current: they change nothing of one that is over.
//
// A Table has no lock: its owner does. The owner sets Now, calls [Table.Cycle], and asks [Table.Upcoming] when to call
// it again.
package timetable
