package watch

import (
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/persistence"
)

// How often the loop reads an instance. A look is one such query.
const (
	lookOften  = 250 * time.Millisecond // after a change
	lookSeldom = time.Second            // after a while without one
	lookGap    = 10 * time.Millisecond  // between two looks, however urgent
	sentGap    = 100 * time.Millisecond // between two looks for messages that are queued

	lookMost    = 2000 // instances of one statement
	lookTimeout = 10 * time.Second
)

// run reads topics until ctx ends.
func (s *Set) run(ctx context.Context, signal run.Nudge) error {
	retry := run.Pauses{First: 20 * time.Millisecond, Most: 5 * time.Second}
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.look(ctx, signal)
		if err != nil && ctx.Err() == nil {
			s.options.Log.Warn("edda: watched instances were not read", "error", err)
		}
		if run.Sleep(ctx, max(lookGap, retry.After(err))) == nil {
			run.Wait(ctx, run.Jitter(lookOften)-time.Since(begun), signal)
		}
	}
	return nil
}

// look reads the topics whose time has come, with one statement or, for very many topics, several.
func (s *Set) look(ctx context.Context, signal run.Nudge) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	due, number := s.due(signal)
	for some := range slices.Chunk(due, lookMost) {
		changes, err := s.options.Sagas.Changed(ctx, s.options.Pool, s.known(some))
		class := pgerr.ClassOf(err)
		if err != nil && class != pgerr.Denied && class != pgerr.Unprepared {
			s.again(due)
			return err
		}
		s.apply(some, found{number, changes, pgerr.Explain(err)})
	}
	return nil
}

// due returns the topics to read, and the number of this look.
func (s *Set) due(signal run.Nudge) (due []*topic, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signal != signal {
		return nil, 0 // the last viewer has left
	}
	signal.Drop() // its topic is among those below
	now := time.Now()
	for _, t := range s.topics {
		if t.urgent || now.Add(lookOften/4).After(t.next) {
			t.urgent = false
			due = append(due, t)
		}
	}
	s.looks++
	return due, s.looks
}

func (s *Set) known(topics []*topic) []persistence.Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make([]persistence.Known, len(topics))
	for n, t := range topics {
		known[n] = persistence.Known{Saga: t.name.saga, Key: t.name.key, ID: t.now.ID, Version: t.now.Version}
	}
	return known
}

// again leaves topics to the next look after a failed one.
func (s *Set) again(topics []*topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		t.urgent = true
	}
}

// found is the result of a look.
type found struct {
	number  uint64
	changes []persistence.Change
	err     error
}

// apply notes the result of a look, and wakes the viewers that may have to compare.
func (s *Set) apply(topics []*topic, f found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := make([]bool, len(topics))
	for _, c := range f.changes {
		topics[c.N].now, news[c.N] = c.Instance, true
	}
	now := time.Now()
	for n, t := range topics {
		if news[n] || f.err != nil || t.joined > t.looked {
			close(t.changed)
			t.changed = make(chan struct{})
		}
		if t.wait = min(max(2*t.wait, lookOften), lookSeldom); news[n] {
			t.wait = lookOften
		}
		t.looked, t.err, t.next = f.number, f.err, now.Add(t.wait)
	}
}
