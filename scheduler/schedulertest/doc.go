// Package schedulertest runs manifests in memory, with a clock of its own: for tests of when things fire. There is no
// Postgres in it, and since there is one process alone, neither lock nor lease.
//
//	s := schedulertest.New(t, start, manifests...)
//	fired := s.Advance(24 * time.Hour)          // what fired, in order
//	s.Succeed(fired[0])                          // the end of its run; followers are due now
//	s.Down(3 * time.Hour)                        // time in which no server ran
//	s.Advance(0)                                 // what the misfire policies make of it
//
// # Promise
//
// A [Schedule] decides with the same code as a server does, and its runs go through the same states: retries with their
// back-off, dead runs that hold their manifest, followers, overlap, timeouts, pauses and misfire policies. One suite of
// scenarios is run against it and against Postgres. Ids count and the clock moves only when told, so a test tells the
// same story every time.
//
// # What differs from a server
//
// What is due fires at that very moment, and is dispatched at once: there is no poll, and groups bound nothing.
// Messages are what the manifest holds; they are not encoded, and are sent nowhere. A run stays active until the test
// ends it, or its timeout does, or a function given to [Schedule.Handle] does.
//
// # Failures
//
// [New] fails the test when a manifest has a fault, and so does a name that is not known. The methods that end a run
// tell whether it was current: of one that has ended otherwise they change nothing, as a late handler changes nothing.
//
// The decisions are those of internal/engine/timetable.
package schedulertest
