package wake

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Waker is woken when messages may have come to its queue.
type Waker interface {
	Wake() (idle bool)  // never blocks; reports whether a loop was idle
	WakeAt(t time.Time) // by this process's clock
}

// Hub passes on wake-ups within a process, from its own transactions and from other processes. Safe for concurrent
// use.
type Hub struct {
	called func(queue int) // called when messages may have come to a queue of any consumer; nil: not called

	mu        sync.Mutex // guards the fields below
	wakers    map[int][]Waker
	listeners []*listener
}

// listener receives payloads with its prefix.
type listener struct {
	prefix string
	hear   func(rest string)
}

// NewHub returns a Hub that calls called for every queue that may have received messages. called must not block.
func NewHub(called func(queue int)) *Hub { return &Hub{called: called, wakers: map[int][]Waker{}} }

// Attach wakes w for the messages of a queue, until detach is called.
func (h *Hub) Attach(queue int, w Waker) (detach func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakers[queue] = append(h.wakers[queue], w)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.wakers[queue] = slices.DeleteFunc(h.wakers[queue], func(other Waker) bool { return other == w })
	}
}

// Listen calls hear with the rest of each payload that begins with prefix, and with "" if such a payload may have
// been missed, until stop is called. hear must not block.
func (h *Hub) Listen(prefix string, hear func(rest string)) (stop func()) {
	l := &listener{prefix: prefix, hear: hear}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, l)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.listeners = slices.DeleteFunc(slices.Clone(h.listeners), func(other *listener) bool { return other == l })
	}
}

// OfQueue returns a function for Listen if the rest of a payload names a queue: it calls do for this queue.
func OfQueue(queue int, do func()) (hear func(rest string)) {
	own := Payload(queue)
	return func(rest string) {
		if rest == "" || rest == own {
			do()
		}
	}
}

// Wake wakes the loops of this process that consume a queue, now or at a time by this process's clock. It reports
// whether a loop was idle, so that no other process need be woken.
func (h *Hub) Wake(queue int, at time.Time) (idle bool) {
	h.mu.Lock()
	wakers := slices.Clone(h.wakers[queue])
	h.mu.Unlock()
	later := at.After(time.Now())
	if !later && h.called != nil {
		h.called(queue)
	}
	for _, w := range wakers {
		if later {
			w.WakeAt(at)
			idle = true
		} else if w.Wake() {
			idle = true
		}
	}
	return idle
}

// Hear passes on a payload from a notification or from this process itself. A payload that is a number names a queue
// with messages; several payloads may be joined by commas.
func (h *Hub) Hear(payload string) {
	for text := range strings.SplitSeq(payload, ",") {
		if queue, err := strconv.Atoi(text); err == nil {
			h.Wake(queue, time.Time{})
			continue
		}
		for _, l := range h.all() {
			if rest, ok := strings.CutPrefix(text, l.prefix); ok {
				l.hear(rest)
			}
		}
	}
}

// Missed is called after notifications may have been lost. It wakes all loops.
func (h *Hub) Missed() {
	h.mu.Lock()
	var wakers []Waker
	for _, some := range h.wakers {
		wakers = append(wakers, some...)
	}
	h.mu.Unlock()
	for _, w := range wakers {
		w.Wake()
	}
	for _, l := range h.all() {
		l.hear("")
	}
}

func (h *Hub) all() []*listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners
}
