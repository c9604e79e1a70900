// Package planning lends the decisions of package scheduler to scheduler/schedulertest, so that a test in memory judges
// by what judges in production, and users see none of it.
//
// # Promise
//
// Read is set as soon as package scheduler is linked, and gives what an evaluation uses: no second opinion.
//
// # Failures
//
// Read returns the fault of a manifest, as the declaration of it would.
package planning

import "time"

// Plan is a manifest that was read: when it is due, and the numbers of its runs with their defaults filled in.
type Plan struct {
	// the first due time of a manifest declared at now; zero is none
	First  func(now time.Time) time.Time
	Decide func(due, now time.Time) Verdict                           // due is not after now
	Jitter func(manifest string, due time.Time) (later time.Duration) // before a run begins

	Parent                         string // of a follower, or of a dormant manifest
	Follows                        bool
	Retries                        int
	RetryDelay, RetryMost, Timeout time.Duration // Timeout 0 is none
}

// Verdict is what becomes of a manifest whose due time has come.
type Verdict struct{ Fire, Next time.Time }

// Reader reads a scheduler.Manifest.
type Reader func(manifest any) (Plan, error)

// Read is the Reader that was lent.
var Read Reader

// Lend sets Read, for package scheduler.
func Lend(r Reader) Reader {
	Read = r
	return r
}
