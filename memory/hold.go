package memory

import (
	"container/heap"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
)

// hold is the right to handle messages of an instance, or of a key of an Ordered endpoint. The mutex of the world
// guards it.
//
// A key has an owner as long as messages wait for it: when the owner leaves, the next one is chosen at once, so that no
// message that is taken later can overtake it. An instance is free when its owner leaves, and one waiting message of
// each queue is woken, so that a queue that is paused or stopped does not block the others.
type hold struct {
	handle  contention.Handle // of the instance
	lane    string            // the key; "" for an instance
	in      *box              // with lane
	owner   *row              // being handled, or, for a lane, perhaps in its queue; nil if free
	waiting map[*box]*rows
}

// enter gives the message its instance or key. If a different message has it, the row waits for that.
func (b *Bus) enter(w *work) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := w.row
	if r.owns != nil { // the key was reserved for it
		return true
	}
	h := b.holdFor(w)
	switch {
	case h == nil:
		return true
	case h.owner == nil:
		h.owner, r.owns = r, h
		return true
	}
	h.park(r)
	b.leaveWoken(r)
	b.change()
	return false
}

// holdFor returns the hold that a message needs, nil if it needs no hold.
func (w *world) holdFor(of *work) *hold {
	switch {
	case of.lane != "":
		h := of.row.in.lanes[of.lane]
		if h == nil {
			h = &hold{lane: of.lane, in: of.row.in, waiting: map[*box]*rows{}}
			of.row.in.lanes[of.lane] = h
		}
		return h
	case of.handle != contention.Handle{}:
		h := w.held[of.handle]
		if h == nil {
			h = &hold{handle: of.handle, waiting: map[*box]*rows{}}
			w.held[of.handle] = h
		}
		return h
	}
	return nil
}

// park makes a row that was taken wait.
func (h *hold) park(r *row) {
	if h.waiting[r.in] == nil {
		h.waiting[r.in] = &rows{}
	}
	heap.Push(h.waiting[r.in], r)
	r.waits = h
	r.in.inHand--
	r.in.waiting++
}

// leave releases the instance or the key of the message. A key stays with a message that goes back unchanged, and if
// the endpoint is Strict also with a message that waits for its retry.
func (b *Bus) leave(w *work) {
	r, h := w.row, w.row.owns
	again := w.released || w.of.options.Ordered == bus.Strict && w.m.Fate == message.FateAgain
	if h != nil && (h.lane == "" || !again) {
		r.owns, h.owner = nil, nil
		b.wake(h)
	}
	b.leaveWoken(r)
}

// leaveWoken wakes a further row in place of a woken row that did not take the instance.
func (w *world) leaveWoken(r *row) {
	h := r.woken
	if r.woken = nil; h != nil && h.owner == nil {
		w.wake(h)
	}
}

// wake wakes the next rows that wait for a hold without an owner.
func (w *world) wake(h *hold) {
	for in, waiting := range h.waiting {
		next := waiting.first()
		h.unpark(next)
		if h.lane != "" {
			h.owner, next.owns = next, h
		} else {
			next.woken = h
		}
		in.put(next)
	}
	switch {
	case h.owner != nil || len(h.waiting) > 0:
	case h.lane != "":
		delete(h.in.lanes, h.lane)
	case w.held[h.handle] == h:
		delete(w.held, h.handle)
	}
}

// unpark removes a row from the waiting ones.
func (h *hold) unpark(r *row) {
	waiting := h.waiting[r.in]
	heap.Remove(waiting, r.at)
	if len(*waiting) == 0 {
		delete(h.waiting, r.in)
	}
	r.waits = nil
	r.in.waiting--
}
