package faultproxy

import (
	"sync"

	"github.com/edda-go/edda/internal/base/run"
)

// An entry is something the client sent that the server will answer.
type entry struct {
	kind  byte   // kindExecute, kindQuery (also for a function call) or kindSync
	after *Fault // strikes when the answer has come; nil for none

	// For an Execute with a fault: toServer says whether a Sync follows at
	// once, and toClient closes settled when the fault is over or cannot come.
	syncNext chan bool
	settled  chan struct{}
}

func newEntry(kind byte, after *Fault) *entry {
	e := &entry{kind: kind, after: after}
	if after != nil {
		e.syncNext = make(chan bool, 1)
		e.settled = make(chan struct{})
	}
	return e
}

func (e *entry) settle() {
	if e.settled != nil {
		close(e.settled)
	}
}

// replies is the queue of what the server still owes, in order. One goroutine
// pushes, another takes away.
type replies struct {
	changed run.Nudge // look again

	mu       sync.Mutex // guards all below
	owed     []*entry
	given    bool // the client has been given all answers so far
	skipping bool // the server ignores everything up to the next Sync
}

func newReplies() *replies {
	return &replies{changed: run.NewNudge(), given: true}
}

// push adds e, unless the server is skipping and will not answer it. It
// reports whether an answer is to come.
func (q *replies) push(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.skipping && e.kind != kindSync {
		return false
	}
	q.skipping = false
	q.owed = append(q.owed, e)
	q.given = false
	return true
}

// head is the entry that the server answers now, or nil.
func (q *replies) head() *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.owed) == 0 {
		return nil
	}
	return q.owed[0]
}

func (q *replies) pop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owed = q.owed[1:]
}

// refuse takes note of an error in the extended protocol: the server answers
// nothing more before the next Sync.
func (q *replies) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.owed) > 0 && q.owed[0].kind == kindExecute {
		q.owed[0].settle()
		q.owed = q.owed[1:]
	}
	q.skipping = len(q.owed) == 0
}

// flushed says that the client was given all that came so far.
func (q *replies) flushed() {
	q.mu.Lock()
	q.given = len(q.owed) == 0
	q.mu.Unlock()
	q.changed.Send()
}

// awaitGiven returns when the server owes nothing and the client was given all
// answers, or, with false, when the connection is done.
func (q *replies) awaitGiven(done <-chan struct{}) bool {
	for {
		q.mu.Lock()
		given := q.given
		q.mu.Unlock()
		if given {
			return true
		}
		select {
		case <-q.changed:
		case <-done:
			return false
		}
	}
}
