package memory

import (
	"container/heap"
	"time"

	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// box is the queue of an endpoint. The mutex of its world guards it.
type box struct {
	queue     *queue.Queue
	rows      rows
	arrivals  int64
	timers    map[saga.ID]*row // by the ids of their messages, so that they can be cancelled
	lanes     map[string]*hold // of an Ordered endpoint, by key
	running   bool             // its endpoint takes messages
	inHand    int
	waiting   int // rows that wait for a message which is in hand, or waits for its retry
	paused    bool
	reason    string
	notBefore time.Time // after a handler has left its message
}

// row is one message in its queue.
type row struct {
	queue.Row
	in      *box
	arrival int64 // its place among those that are due at the same time
	at      int   // its place in the heap that has it; -1: it is in hand

	owns  *hold // it has this
	waits *hold // it waits for this
	woken *hold // it was woken to take this
}

// push adds a row behind those that are due at the same time.
func (q *box) push(r *row) {
	q.arrivals++
	r.in, r.arrival = q, q.arrivals
	q.put(r)
}

// put adds a row in its old place.
func (q *box) put(r *row) { heap.Push(&q.rows, r) }

// due is when the next row may be taken, zero if that is unknown.
func (q *box) due() (at time.Time) {
	if q.paused || len(q.rows) == 0 {
		return time.Time{}
	}
	if at = q.rows[0].Due; q.notBefore.After(at) {
		return q.notBefore
	}
	return at
}

// next returns the row to take now, or the time at which there may be one; zero is unknown.
func (q *box) next(now time.Time) (r *row, at time.Time) {
	if at = q.due(); at.IsZero() || at.After(now) {
		return nil, at
	}
	r = q.rows.first()
	heap.Remove(&q.rows, 0)
	return r, time.Time{}
}

// cancel removes a timeout that is not in hand.
func (w *world) cancel(q *box, id saga.ID) {
	r := q.timers[id]
	delete(q.timers, id)
	switch {
	case r == nil || r.at < 0:
	case r.waits != nil:
		r.waits.unpark(r)
	default:
		heap.Remove(&q.rows, r.at)
		w.leaveWoken(r)
	}
}

// rows are ordered by due time and arrival. They are a heap.
type rows []*row

func (r rows) first() *row { return r[0] }

func (r rows) Len() int { return len(r) }

func (r rows) Less(a, b int) bool {
	if d := r[a].Due.Compare(r[b].Due); d != 0 {
		return d < 0
	}
	return r[a].arrival < r[b].arrival
}

func (r rows) Swap(a, b int) {
	r[a], r[b] = r[b], r[a]
	r[a].at, r[b].at = a, b
}

// Push is heap.Interface's.
func (r *rows) Push(x any) {
	if one, ok := x.(*row); ok {
		one.at = len(*r)
		*r = append(*r, one)
	}
}

// Pop is heap.Interface's.
func (r *rows) Pop() any {
	last := (*r)[len(*r)-1]
	last.at = -1
	(*r)[len(*r)-1] = nil
	*r = (*r)[:len(*r)-1]
	return last
}
