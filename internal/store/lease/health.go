package lease

import (
	"sync"
	"time"
)

// State of a Keeper, see the package's comment.
type State uint8

// The states.
const (
	Standby State = iota
	Holding
	Stopping
)

// String is the word for s.
func (s State) String() string { return [...]string{"standby", "holding", "stopping"}[s] }

// Health is how a Keeper stands, by this process's knowledge.
type Health struct {
	Self  string // the holder of this Keeper's terms
	State State
	// the one that it holds; else the last that it saw, whose Holder is "" when that was released. Zero: none yet
	Term    Term
	Trusted time.Time // until when the term is this Keeper's, whatever happens; zero in standby

	Acquired, Released, Lost int64 // terms that began; and those that ended in order, and otherwise
}

// health is a Health that a Keeper writes and anybody reads.
type health struct {
	mu sync.Mutex // guards h
	h  Health
}

// Health tells how the Keeper stands. It waits for nothing, and is safe for concurrent use.
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
