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
	timers    map[saga.ID]*row // by the ids of their messages, to cancel them
	lanes     map[string]*hold // of an Ordered endpoint, by key
	running   bool             // its endpoint takes messages
	inHand    int
	waiting   int // rows that wait for a message that is being handled, or waits for its retry
	paused    bool
	reason    string
	notBefore time.Time // after a handler has left its message
}

// row is one message in its queue.
type row struct {
	queue.Row
	in      *box
	arrival int64 // its place among rows that are due at the same time
	at      int   // its place in the heap that contains it; -1 while it is being handled

	owns  *hold // the row owns this hold
	waits *hold // the row waits for this hold
	woken *hold // the row was woken to take this hold
}

// push adds a row after rows that are due at the same time.
func (q *box) push(r *row) {
	q.arrivals++
	r.in, r.arrival = q, q.arrivals
	q.put(r)
}

// put adds a row at its former place.
func (q *box) put(r *row) { heap.Push(&q.rows, r) }

// due returns when the next row may be taken, zero if that is unknown.
func (q *box) due() (at time.Time) {
	if q.paused || len(q.rows) == 0 {
		return time.Time{}
	}
	if at = q.rows[0].Due; q.notBefore.After(at) {
		return q.notBefore
	}
	return at
}

// next returns the row to take now, or the time when a row may be due; zero is unknown.
func (q *box) next(now time.Time) (r *row, at time.Time) {
	if at = q.due(); at.IsZero() || at.After(now) {
		return nil, at
	}
	r = q.rows.first()
	heap.Remove(&q.rows, 0)
	return r, time.Time{}
}

// cancel removes a timeout that is not being handled.
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

// rows is a heap, ordered by due time and arrival.
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

// Push implements heap.Interface.
func (r *rows) Push(x any) {
	if one, ok := x.(*row); ok {
		one.at = len(*r)
		*r = append(*r, one)
	}
}

// Pop implements heap.Interface.
func (r *rows) Pop() any {
	last := (*r)[len(*r)-1]
	last.at = -1
	(*r)[len(*r)-1] = nil
	*r = (*r)[:len(*r)-1]
	return last
}
