// Package unguard switches guards of the scheduler off, for the tests that show what each of them is for. Nothing that
// a user links sets its switches. They are read when a scheduler is made.
package unguard

import "sync/atomic"

// What is off. The zero values are what production has.
var (
	Lease atomic.Bool // every server evaluates, whoever holds the lease
	Lock  atomic.Bool // an evaluation does not ask for the advisory lock
)
