package schedulertest

import (
	"slices"
	"time"

	"github.com/edda-go/edda/internal/plan"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Succeed ends the run of a firing well: its manifest may fire again, and those that follow it are due. It reports
// whether the firing was current; if not, nothing changes.
func (s *Schedule) Succeed(f Firing) (current bool) { return s.close(f, scheduler.RunSucceeded) }

// Fail ends an attempt. Its run waits for the next one, or is dead when the manifest has no retries left.
func (s *Schedule) Fail(f Firing) (current bool) {
	s.t.Helper()
	r := s.runOf(f)
	if r.attempt > r.manifest.retries {
		return s.close(f, scheduler.RunDead)
	}
	return s.close(f, scheduler.RunWaiting)
}

// Kill ends an attempt as a failure that no other attempt cures: the run is dead.
func (s *Schedule) Kill(f Firing) (current bool) { return s.close(f, scheduler.RunDead) }

// Discard ends a run as the handler does that wants nothing of it: it is cancelled.
func (s *Schedule) Discard(f Firing) (current bool) { return s.close(f, scheduler.RunCancelled) }

func (s *Schedule) close(f Firing, to scheduler.RunState) (current bool) {
	s.t.Helper()
	r := s.runOf(f)
	if r.state != scheduler.RunActive || r.attempt != f.Attempt {
		return false
	}
	s.end(r, to)
	return true
}

// Cancel is an operator's: it ends a run that is open or dead, and reports whether there was one.
func (s *Schedule) Cancel(f Firing) (open bool) {
	s.t.Helper()
	r := s.runOf(f)
	if r.state.Ended() {
		return false
	}
	s.end(r, scheduler.RunCancelled)
	return true
}

// Retry is an operator's: a run that is dead, timed out, cancelled or waiting fires again in the next Advance. It
// reports whether it does.
func (s *Schedule) Retry(f Firing) (again bool) {
	s.t.Helper()
	r := s.runOf(f)
	if r.state == scheduler.RunSucceeded || r.state == scheduler.RunActive {
		return false
	}
	m := r.manifest
	r.state, r.ready = scheduler.RunQueued, s.now
	if !slices.Contains(s.runs, r) {
		s.runs = append(s.runs, r)
	}
	if m.run == nil && !m.Overlap && r.origin == scheduled {
		m.run = r
	}
	if m.held == r {
		m.held = firstDead(m, s.known)
	}
	return true
}

// firstDead returns the first of the dead runs of the manifest.
func firstDead(m *manifest, known map[saga.ID]*run) (first *run) {
	for _, r := range known {
		if r.manifest == m && r.state == scheduler.RunDead && (first == nil || inOrder(r, first) < 0) {
			first = r
		}
	}
	return first
}

// end notes in a manifest what became of its run, and makes those due that follow it.
func (s *Schedule) end(r *run, to scheduler.RunState) {
	m := r.manifest
	r.state, r.deadline = to, time.Time{}
	if to == scheduler.RunWaiting {
		r.ready = s.now.Add(backOff(m, r.attempt))
		return
	}
	s.runs = slices.DeleteFunc(s.runs, func(open *run) bool { return open == r })
	if m.run == r {
		m.run = nil
	}
	switch {
	case to == scheduler.RunDead:
		m.held = r
	case m.held == r:
		m.held = firstDead(m, s.known)
	}
	if to == scheduler.RunSucceeded {
		due := r.due // a follower is due for the moment that this run was due
		if due.After(s.now) {
			due = s.now
		}
		follow(m, s.manifests, due)
	}
}

// backOff is the pause after an attempt that failed.
func backOff(m *manifest, attempt int) time.Duration {
	pause := m.retryDelay
	for range attempt - 1 {
		if pause >= m.retryMost {
			break
		}
		pause *= 2
	}
	return min(pause, m.retryMost)
}

// follow makes due those of the manifests that follow m.
func follow(m *manifest, manifests []*manifest, due time.Time) {
	for _, f := range manifests {
		if f.plan.Rule.Kind == plan.After && f.plan.Rule.Parent == m.Name && f.due.Before(due) {
			f.due = due
		}
	}
}
