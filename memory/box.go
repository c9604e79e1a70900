package memory

import (
	"bytes"
	"container/heap"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/recall"
	"github.com/edda-go/edda/saga"
)

// box is the queue of an endpoint. The mutex of its world guards it.
type box struct {
	queue     *queue.Queue
	rows      rows
	timers    map[saga.ID]*row // by the ids of their messages, so that they can be cancelled
	lanes     map[string]*hold // of an Ordered endpoint, by key
	running   bool             // its endpoint takes messages
	inHand    int
	waiting   int // behind messages that are in hand, or wait for their retry
	paused    bool
	reason    string
	notBefore time.Time // after a handler has left its message
}

// row is one message in its queue.
type row struct {
	queue.Row
	in *box
	at int // its place in rows; -1: it is in hand

	owns   bool          // it has the right to its instance or its key
	handle recall.Handle // of the instance
	lane   string        // the key
}

// before reports whether r is to be handled before another row.
func (r *row) before(other *row) bool {
	if d := r.Due.Compare(other.Due); d != 0 {
		return d < 0
	}
	return r.ID.Compare(other.ID) < 0
}

func (q *box) push(r *row) {
	r.in = q
	heap.Push(&q.rows, r)
}

// next returns the row to take now, or the time at which there may be one; zero is unknown.
func (q *box) next(now time.Time) (r *row, at time.Time) {
	switch {
	case q.paused || len(q.rows) == 0:
		return nil, time.Time{}
	case q.notBefore.After(now):
		return nil, q.notBefore
	case q.rows[0].Due.After(now):
		return nil, q.rows[0].Due
	}
	r, _ = heap.Pop(&q.rows).(*row)
	return r, time.Time{}
}

// cancel removes a timeout that is not in hand.
func (q *box) cancel(id saga.ID) {
	if r := q.timers[id]; r != nil && r.at >= 0 {
		heap.Remove(&q.rows, r.at)
	}
	delete(q.timers, id)
}

// rows are ordered by due time and id. They are a heap.
type rows []*row

func (r rows) Len() int { return len(r) }

func (r rows) Less(a, b int) bool { return r[a].before(r[b]) }

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

// instances are the saga instances.
type instances struct {
	keys map[string]map[string]saga.ID // by saga and key
	all  map[saga.ID]saga.Instance
}

func (s *instances) begin() {
	s.keys, s.all = map[string]map[string]saga.ID{}, map[saga.ID]saga.Instance{}
}

// byKey returns a copy of an instance.
func (s *instances) byKey(name, key string) (saga.Instance, bool) {
	id, ok := s.keys[name][key]
	if !ok {
		return saga.Instance{}, false
	}
	return s.byID(id)
}

func (s *instances) byID(id saga.ID) (saga.Instance, bool) {
	i, ok := s.all[id]
	i.State, i.Pending = bytes.Clone(i.State), slices.Clone(i.Pending)
	return i, ok
}

// save stores an instance under its next version.
func (s *instances) save(i saga.Instance) {
	i.New = false
	i.Version++
	i.State, i.Pending = bytes.Clone(i.State), slices.Clone(i.Pending)
	if s.keys[i.Saga] == nil {
		s.keys[i.Saga] = map[string]saga.ID{}
	}
	s.keys[i.Saga][i.Key], s.all[i.ID] = i.ID, i
}

func (s *instances) remove(i saga.Instance) {
	delete(s.all, i.ID)
	if s.keys[i.Saga][i.Key] == i.ID {
		delete(s.keys[i.Saga], i.Key)
	}
}
