// Package schedulertest runs manifests in memory, with a clock that the test moves: for tests of when manifests fire.
// It needs no Postgres, and it uses neither locks nor leases, because it is used by one goroutine.
//
//	s := schedulertest.New(t, start, manifests...)
//	fired := s.Advance(24 * time.Hour)          // the firings, in order
//	s.Succeed(fired[0])                          // the end of its run; followers are due now
//	s.Down(3 * time.Hour)                        // time in which no server ran
//	s.Advance(0)                                 // applies the misfire policies to it
//
// # Promise
//
// A [Schedule] decides with the same code as a server, and its runs have the same states: retries with their
// back-off, dead runs that hold their manifest, followers, overlap, timeouts, pauses and misfire policies. One suite
// of scenarios runs against it and against Postgres. Ids are counted and only the test moves the clock, so a test has
// the same result every time.
//
// # Differences from a server
//
// A manifest fires exactly at its due time, and its run is dispatched at once: there is no polling, and groups have
// no limits. Messages are taken from the manifest; they are not encoded, and are sent nowhere. A run stays active
// until the test, its timeout, or a function given to [Schedule.Handle] ends it.
//
// # Failures
//
// [New] fails the test if a manifest has a fault. A method fails the test if the name of its manifest is unknown. The
// methods that end a run report whether it was current. If the run has ended otherwise they change nothing, as on a
// server a late handler changes nothing.
//
// The decisions are made by internal/engine/timetable.
package schedulertest
