package timetable

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

func fireOf(r *run) saga.Firing {
	return saga.Firing{Manifest: r.manifest.Name, Run: r.id, Attempt: r.attempt, Due: r.due.In(r.manifest.plan.Zone())}
}

// Check returns the result of the SQL function run_check: whether an attempt is current, has ended, or belongs to no
// run.
func (t *Table) Check(f *saga.Firing) int32 {
	switch r := t.known[f.Run]; {
	case r == nil:
		return runs.Missing
	case r.attempt == f.Attempt && r.state == scheduler.RunActive:
		return runs.Current
	}
	return runs.Over
}

// End ends an attempt as the SQL function run_end does, with an outcome of package runs. It reports whether the attempt
// was current; if not, nothing changes.
func (t *Table) End(f *saga.Firing, outcome, text string) (current bool) {
	r := t.known[f.Run]
	if t.Check(f) != runs.Current {
		return false
	}
	r.err = text
	r.decide(outcome)
	switch outcome {
	case runs.Succeeded:
		t.end(r, scheduler.RunSucceeded)
	case runs.Discarded, runs.Cancelled:
		t.end(r, scheduler.RunCancelled)
	case runs.Failed:
		if r.attempt <= r.manifest.retries {
			t.end(r, scheduler.RunWaiting)
			break
		}
		t.end(r, scheduler.RunDead)
	default:
		t.end(r, scheduler.RunDead)
	}
	return true
}

// decide records the outcome of the attempt in hand.
func (r *run) decide(outcome string) {
	for len(r.outcomes) < r.attempt {
		r.outcomes = append(r.outcomes, "")
	}
	if outcome == runs.Dead {
		outcome = runs.Failed // as run_end records it
	}
	r.outcomes[r.attempt-1] = outcome
}

// EndedSo reports whether an attempt has ended with this outcome.
func (t *Table) EndedSo(f *saga.Firing, outcome string) bool {
	r := t.known[f.Run]
	if outcome == runs.Dead {
		outcome = runs.Failed
	}
	return r != nil && f.Attempt > 0 && f.Attempt <= len(r.outcomes) && r.outcomes[f.Attempt-1] == outcome
}

// Cancel ends a run that is open or dead. It returns scheduler.ErrEnded if the run has ended otherwise.
func (t *Table) Cancel(id saga.ID, note string) error {
	r, err := t.findRun(id)
	switch {
	case err != nil:
		return err
	case r.state == scheduler.RunCancelled:
		return nil
	case r.state.Ended():
		return fmt.Errorf("%w: it is %s", scheduler.ErrEnded, r.state)
	}
	if r.note = note; r.attempt > 0 {
		r.decide(runs.Cancelled)
	}
	t.end(r, scheduler.RunCancelled)
	return nil
}

var errActive = errors.New("it is active: cancel it first")

// Retry queues a run again that is dead, timed out, cancelled or waiting. It returns scheduler.ErrEnded if the run
// has succeeded, and scheduler.ErrTaken if another run has its place.
func (t *Table) Retry(id saga.ID, note string) error {
	r, err := t.findRun(id)
	switch {
	case err != nil:
		return err
	case r.state == scheduler.RunQueued:
		return nil
	case r.state == scheduler.RunActive:
		return errActive
	case r.state == scheduler.RunSucceeded:
		return fmt.Errorf("%w: it succeeded; trigger its manifest instead", scheduler.ErrEnded)
	case t.isTaken(r):
		return scheduler.ErrTaken
	}
	m := r.manifest
	r.state, r.ready, r.refused, r.note, r.ended = scheduler.RunQueued, t.Now, 0, note, time.Time{}
	if !slices.Contains(t.runs, r) {
		t.runs = append(t.runs, r)
	}
	if m.run == nil && !m.Overlap && (r.origin == scheduled || r.origin == dependent) {
		m.run = r
	}
	if m.held == r {
		m.held = firstDead(m, t.known)
	}
	return nil
}

// isTaken reports whether another run has the place of r, which is to be queued again.
func (t *Table) isTaken(r *run) bool {
	m := r.manifest
	if (r.origin == scheduled || r.origin == dependent) && !m.Overlap {
		return m.run != nil && m.run != r
	}
	return r.origin == activation && slices.ContainsFunc(t.runs, func(other *run) bool {
		return other != r && other.manifest == m && other.origin == activation && !other.state.Ended()
	})
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

// end records the end of a run in its manifest, and makes the manifests due that follow it.
func (t *Table) end(r *run, to scheduler.RunState) {
	m := r.manifest
	r.state, r.deadline = to, time.Time{}
	if to == scheduler.RunWaiting {
		r.ready = t.Now.Add(backOff(m, r.attempt))
		return
	}
	t.runs = slices.DeleteFunc(t.runs, func(open *run) bool { return open == r })
	if to.Ended() {
		r.ended = t.Now
	}
	if m.run == r {
		m.run = nil
	}
	switch {
	case to == scheduler.RunDead:
		m.held = r
	case m.held == r:
		m.held = firstDead(m, t.known)
	}
	if to == scheduler.RunSucceeded {
		due := r.due // the follower's due time is that of this run
		if due.After(t.Now) {
			due = t.Now
		}
		follow(m, t.manifests, due)
	}
}

// backOff returns the pause after an attempt that failed.
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

// follow makes the manifests that follow m due.
func follow(m *manifest, manifests []*manifest, due time.Time) {
	for _, f := range manifests {
		if f.plan.Rule.Kind == plan.After && f.plan.Rule.Parent == m.Name && f.due.Before(due) {
			f.due = due
		}
	}
}
