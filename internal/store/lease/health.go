package lease

import (
	"sync"
	"time"
)

// State is the state of a Keeper, see the package's comment.
type State uint8

// States of a Keeper.
const (
	Standby State = iota
	Holding
	Stopping
)

// String returns the name of s.
func (s State) String() string { return [...]string{"standby", "holding", "stopping"}[s] }

// Health is the state of a Keeper and its lease, as far as this process has read it.
type Health struct {
	Self  string // the holder of this Keeper's terms
	State State
	// the current term of this Keeper; otherwise the last term that it read, whose Holder is "" if it was released.
	// Zero before the first bid
	Term    Term
	Trusted time.Time // until when the term is certainly this Keeper's; zero in standby

	Acquired, Released, Lost int64 // terms that began, that ended in order, and that ended otherwise
}

// health is a Health that a Keeper writes and any goroutine reads.
type health struct {
	mu sync.Mutex // guards h
	h  Health
}

// Health returns the state of the Keeper. It waits for nothing, and is safe for concurrent use.
func (k *Keeper) Health() Health {
	k.health.mu.Lock()
	defer k.health.mu.Unlock()
	h := k.health.h
	h.Self = k.options.Holder
	return h
}

func (s *health) update(change func(h *Health)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.h)
}

func (s *health) seen(t Term) {
	if t.Epoch > 0 {
		s.update(func(h *Health) { h.Term = t })
	}
}

func (s *health) acquired(t Term, trusted time.Time) {
	s.update(func(h *Health) {
		h.Term, h.Trusted, h.State = t, trusted, Holding
		h.Acquired++
	})
}

func (s *health) ended(inOrder bool) {
	s.update(func(h *Health) {
		h.State, h.Trusted = Standby, time.Time{}
		if inOrder {
			h.Released++
			h.Term.Holder = ""
		} else {
			h.Lost++
		}
	})
}
