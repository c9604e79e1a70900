package faultproxy

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// When is the moment of a fault; see the package comment for its exact meaning.
type When int

const (
	// Before the statement is forwarded.
	Before When = iota
	// After the server completed it and before the client is told.
	After
)

func (w When) String() string {
	if w == After {
		return "after"
	}
	return "before"
}

// A Fault breaks the connection on which a named statement passes.
type Fault struct {
	Statement string // the name in "-- name: take", or commit, begin, …
	N         int    // the n-th passing through this proxy, from 1; 0 is every one
	When      When
	Do        Action // the zero Action is Cut
}

func (f Fault) String() string {
	return fmt.Sprintf("%s %d %v: %v", f.Statement, f.N, f.moment(), f.Do)
}

// moment is When, unless the action has a moment of its own.
func (f Fault) moment() When {
	switch f.Do.kind {
	case dropReply:
		return After
	case swallow:
		return Before
	default:
		return f.When
	}
}

// An Action is what a fault does: Cut, DropReply, Swallow, or one of Delay,
// Call and Pause.
type Action struct {
	kind  actionKind
	delay time.Duration
	call  func()
}

type actionKind string

const (
	cut       actionKind = "" // the zero Action
	dropReply actionKind = "drop reply"
	swallow   actionKind = "swallow"
	delay     actionKind = "delay"
	call      actionKind = "call"
	pause     actionKind = "pause"
)

var (
	// Cut closes both sides.
	Cut = Action{kind: cut}
	// DropReply forwards the statement, keeps its whole answer, rows included,
	// from the client, and cuts: a COMMIT took effect and no client knows. It is
	// always After.
	DropReply = Action{kind: dropReply}
	// Swallow never forwards the statement, and cuts. It is always Before.
	Swallow = Action{kind: swallow}
)

// Delay holds the statement or its reply for d, and goes on.
func Delay(d time.Duration) Action { return Action{kind: delay, delay: d} }

// Call runs f and cuts. It is how a test kills a process at a moment: what the
// process had not sent or not heard by then, it never does. f must not close
// the proxy.
func Call(f func()) Action { return Action{kind: call, call: f} }

// Pause runs f, which may look into the database or wait, and goes on. f must
// not close the proxy.
func Pause(f func()) Action { return Action{kind: pause, call: f} }

func (a Action) String() string {
	switch a.kind {
	case cut:
		return "cut"
	case delay:
		return "delay " + a.delay.String()
	default:
		return string(a.kind)
	}
}

// perform does the action and reports whether the connection goes on. It
// returns early from a delay when the connection is done.
func (a Action) perform(done <-chan struct{}) (goOn bool) {
	switch a.kind {
	case delay:
		timer := time.NewTimer(a.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-done:
			return false
		}
	case pause:
		a.call()
		return true
	case call:
		a.call()
	}
	return false
}

// Walk lists a fault before and one after every passing of a clean run, in a
// stable order. A crash test sets them one at a time.
func Walk(seen map[string]int, do Action) []Fault {
	var faults []Fault
	for _, statement := range slices.Sorted(maps.Keys(seen)) {
		for n := 1; n <= seen[statement]; n++ {
			faults = append(faults,
				Fault{Statement: statement, N: n, When: Before, Do: do},
				Fault{Statement: statement, N: n, When: After, Do: do})
		}
	}
	return faults
}
