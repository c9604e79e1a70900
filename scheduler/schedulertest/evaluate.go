package schedulertest

import (
	"errors"
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// mostFirings ends a test whose manifests fire in a circle.
const mostFirings = 1_000_000

// Advance moves the clock by d while a scheduler runs, and returns what fired, in order. Advance(0) is what is due now.
func (s *Schedule) Advance(d time.Duration) []Firing {
	s.t.Helper()
	if d < 0 {
		s.t.Fatalf("schedulertest: advance by %v: time does not go back", d)
	}
	s.fired = nil
	end := s.now.Add(d.Truncate(time.Microsecond))
	for {
		for s.cycle() {
			if len(s.fired) > mostFirings {
				s.t.Fatalf("schedulertest: more than %d firings until %v: advance in smaller steps", mostFirings, s.now)
			}
		}
		next := s.upcoming()
		if next.IsZero() || next.After(end) {
			break
		}
		s.now = next.In(end.Location())
	}
	s.now = end
	return s.fired
}

// Down moves the clock by d while no scheduler runs. Nothing fires and nothing times out until the next Advance.
func (s *Schedule) Down(d time.Duration) {
	s.t.Helper()
	if d < 0 {
		s.t.Fatalf("schedulertest: down for %v: time does not go back", d)
	}
	s.now = s.now.Add(d.Truncate(time.Microsecond))
}

// upcoming is the next moment at which something happens by itself.
func (s *Schedule) upcoming() (next time.Time) {
	soonest := func(t time.Time) {
		if t.After(s.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, m := range s.manifests {
		if m.idle() {
			soonest(m.due)
		}
	}
	for _, r := range s.runs {
		switch r.state {
		case scheduler.RunWaiting:
			soonest(r.ready)
		case scheduler.RunActive:
			soonest(r.deadline)
		}
	}
	return next
}

// cycle is an evaluation and a dispatch. It reports whether anything happened.
func (s *Schedule) cycle() (some bool) {
	due := slices.DeleteFunc(slices.Clone(s.manifests), func(m *manifest) bool {
		return !m.idle() ||
			m.due.After(s.now)
	})
	slices.SortStableFunc(due, func(a, b *manifest) int { return a.due.Compare(b.due) })
	for _, m := range due {
		s.evaluate(m)
	}
	reaped := s.reap()
	sent := s.dispatch()
	return len(due) > 0 || reaped || sent
}

func (s *Schedule) evaluate(m *manifest) {
	v := m.plan.Decide(m.due, s.now)
	m.due = v.Next
	if v.Fire.IsZero() {
		return
	}
	m.run = &run{manifest: m, due: v.Fire, ready: v.Fire.Add(m.plan.Jitter(m.Name, v.Fire)), message: m.Message}
	s.queue(m.run)
}

// reap ends what took too long.
func (s *Schedule) reap() (some bool) {
	for _, r := range slices.Clone(s.runs) {
		if r.state == scheduler.RunActive && !r.deadline.IsZero() && !r.deadline.After(s.now) {
			s.end(r, scheduler.RunTimedOut)
			some = true
		}
	}
	return some
}

// dispatch sends what is ready.
func (s *Schedule) dispatch() (some bool) {
	var ready []*run
	for _, r := range s.runs {
		if r.state == scheduler.RunWaiting && !r.ready.After(s.now) {
			r.state = scheduler.RunQueued
		}
		if r.state == scheduler.RunQueued {
			ready = append(ready, r)
		}
	}
	slices.SortStableFunc(ready, inOrder)
	for _, r := range ready {
		if r.state == scheduler.RunQueued { // a handler before it may have cancelled it
			s.send(r)
		}
	}
	return len(ready) > 0
}

func (s *Schedule) send(r *run) {
	r.state, r.attempt, r.deadline = scheduler.RunActive, r.attempt+1, time.Time{}
	if r.manifest.timeout > 0 {
		r.deadline = s.now.Add(r.manifest.timeout)
	}
	if r.manifest.Overlap && r.manifest.run == r {
		r.manifest.run = nil
	}
	f := Firing{saga.Fire{Manifest: r.manifest.Name, Run: r.id, Attempt: r.attempt, Due: r.due}, s.now, r.message}
	s.fired = append(s.fired, f)
	if handler := s.handlers[r.manifest.Name]; handler != nil {
		s.answer(f, handler(f))
	}
}

func (s *Schedule) answer(f Firing, err error) {
	var permanent *saga.PermanentError
	switch {
	case err == nil:
		s.Succeed(f)
	case errors.As(err, &permanent):
		s.Kill(f)
	default:
		s.Fail(f)
	}
}
