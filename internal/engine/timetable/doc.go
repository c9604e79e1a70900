// Package timetable decides about manifests and their runs in memory.
//
// # Promise
//
// A [Table] decides with the same arithmetic as a server (internal/base/plan), and its runs go through the same states:
// retries with their back-off, dead runs that hold their manifest, followers, overlap, timeouts, pauses and misfire
// policies. One suite of scenarios, in package scheduler, is run against it and against Postgres.
//
// A due manifest fires at exactly that time and is dispatched at once: there is no poll, and groups bound nothing.
// There is only one process, so the table takes neither lock nor lease.
//
// # Failures
//
// [New] returns an error that describes the faults of the manifests. Methods that name a manifest or a run return an
// error for an unknown name. The methods that end a run report whether it was current: they do not change a run that
// has ended.
//
// A Table has no lock: its owner does. The owner sets Now, calls [Table.Cycle], and reads from [Table.Upcoming] when
// to call it again.
package timetable
