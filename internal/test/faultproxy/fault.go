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
	// After the server has completed it and before the client is informed.
	After
)

func (w When) String() string {
	if w == After {
		return "after"
	}
	return "before"
}

// Fault breaks the connection of a passing of a named statement.
type Fault struct {
	Statement string // the name in "-- name: take", or commit, begin, …
	N         int    // the n-th passing through this proxy, from 1; 0 means every one
	When      When
	Do        Action // the zero Action is Cut
}

func (f Fault) String() string {
	return fmt.Sprintf("%s %d %v: %v", f.Statement, f.N, f.moment(), f.Do)
}

// moment returns When, unless the action has a moment of its own.
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

// Action is the effect of a fault: Cut, DropReply, Swallow, or an effect of Delay, Call and Pause.
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
	// DropReply forwards the statement, keeps its whole answer, including rows, from the client, and cuts: a COMMIT
	// has taken effect without the client's knowledge. It is always After.
	DropReply = Action{kind: dropReply}
	// Swallow never forwards the statement, and cuts. It is always Before.
	Swallow = Action{kind: swallow}
)

// Delay holds the statement or its reply for d, and continues.
func Delay(d time.Duration) Action { return Action{kind: delay, delay: d} }

// Call runs f and cuts. With it a test kills a process at a given moment: the process does nothing after that. f must
// not close the proxy.
func Call(f func()) Action { return Action{kind: call, call: f} }

// Pause runs f, which may query the database or wait, and continues. f must not close the proxy.
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

// perform performs the action and reports whether the connection continues. It returns early from a delay if the
// connection is done.
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

// Walk lists a fault before and a fault after every passing of a clean run, in a stable order. A crash test sets them
// one at a time.
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
