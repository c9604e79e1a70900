package faultproxy

import (
	"sync"

	"github.com/edda-go/edda/internal/base/run"
)

// entry is a request of the client that the server will answer.
type entry struct {
	kind  byte   // kindExecute, kindQuery (also for a function call) or kindSync
	after *Fault // performed when the answer has come; nil without a fault

	// For an Execute with a fault: toServer sends whether a Sync follows at once, and toClient closes settled when
	// the fault is over or cannot come.
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

// replies is the queue of outstanding answers of the server, in order. One goroutine adds entries, another removes
// them.
type replies struct {
	changed run.Nudge // check again

	mu       sync.Mutex // guards all fields below
	owed     []*entry
	given    bool // the client has all answers so far
	skipping bool // the server ignores everything up to the next Sync
}

func newReplies() *replies {
	return &replies{changed: run.NewNudge(), given: true}
}

// push adds e, unless the server is skipping and will not answer it. It reports whether an answer will come.
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

// head returns the entry that the server answers now, or nil.
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

// refuse notes an error in the extended protocol: the server answers nothing more before the next Sync.
func (q *replies) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.owed) > 0 && q.owed[0].kind == kindExecute {
		q.owed[0].settle()
		q.owed = q.owed[1:]
	}
	q.skipping = len(q.owed) == 0
}

// flushed notes that the client has all answers so far.
func (q *replies) flushed() {
	q.mu.Lock()
	q.given = len(q.owed) == 0
	q.mu.Unlock()
	q.changed.Send()
}

// awaitGiven returns when the server owes nothing and the client has all answers, or, with false, when the connection
// is done.
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
