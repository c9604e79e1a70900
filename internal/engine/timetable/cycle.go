package timetable

import (
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/scheduler"
)

// Upcoming returns the time of the next event that comes by itself, or zero.
func (t *Table) Upcoming() (next time.Time) {
	soonest := func(at time.Time) {
		if at.After(t.Now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, m := range t.manifests {
		if m.idle() {
			soonest(m.due)
		}
	}
	for _, r := range t.runs {
		switch r.state {
		case scheduler.RunWaiting:
			soonest(r.ready)
		case scheduler.RunActive:
			soonest(r.deadline)
		}
	}
	return next
}

// Cycle evaluates the due manifests, ends runs that took too long, and sends runs that are ready. It reports whether
// anything happened; then there may be more to do.
func (t *Table) Cycle() (some bool) {
	due := slices.DeleteFunc(slices.Clone(t.manifests), func(m *manifest) bool {
		return !m.idle() || m.due.After(t.Now)
	})
	slices.SortStableFunc(due, func(a, b *manifest) int { return a.due.Compare(b.due) })
	for _, m := range due {
		t.evaluate(m)
	}
	reaped := t.reap()
	sent := t.dispatch()
	return len(due) > 0 || reaped || sent
}

func (t *Table) evaluate(m *manifest) {
	v := m.plan.Decide(m.due, t.Now)
	if v.Missed > 0 {
		t.warn("edda: due times of a manifest passed without a run", "manifest", m.Name, "due", m.due, "missed",
			v.Missed)
	}
	m.due = v.Next
	if v.Fire.IsZero() {
		return
	}
	m.run = &run{manifest: m, due: v.Fire, ready: v.Fire.Add(m.plan.Jitter(m.Name, v.Fire)), message: m.Message}
	if m.plan.Rule.Kind == plan.After {
		m.run.origin = dependent
	}
	t.queue(m.run)
}

// reap ends runs that took too long.
func (t *Table) reap() (some bool) {
	for _, r := range slices.Clone(t.runs) {
		if r.state == scheduler.RunActive && !r.deadline.IsZero() && !r.deadline.After(t.Now) {
			r.err = "it took longer than its Timeout"
			t.end(r, scheduler.RunTimedOut)
			t.warn("edda: a run took longer than the Timeout of its manifest, and is timed out", "manifest",
				r.manifest.Name, "run", r.id, "attempt", r.attempt, "dead", false)
			some = true
		}
	}
	return some
}

// dispatch sends runs that are ready.
func (t *Table) dispatch() (some bool) {
	var ready []*run
	for _, r := range t.runs {
		if r.state == scheduler.RunWaiting && !r.ready.After(t.Now) {
			r.state = scheduler.RunQueued
		}
		if r.state == scheduler.RunQueued {
			ready = append(ready, r)
		}
	}
	slices.SortStableFunc(ready, inOrder)
	for _, r := range ready {
		if r.state == scheduler.RunQueued { // an earlier send may have cancelled it
			t.send(r)
		}
	}
	return len(ready) > 0
}

const (
	mostRefused = 5               // sends that fail in a row before the run is dead
	refusedWait = 5 * time.Second // before the next try, doubling
	longestWait = time.Minute
)

func (t *Table) send(r *run) {
	r.state, r.attempt, r.deadline = scheduler.RunActive, r.attempt+1, time.Time{}
	if r.manifest.timeout > 0 {
		r.deadline = t.Now.Add(r.manifest.timeout)
	}
	if r.manifest.Overlap && r.manifest.run == r {
		r.manifest.run = nil
	}
	f := Firing{Firing: fireOf(r), At: t.Now, Message: r.message}
	sent, err := t.Send(f)
	if err == nil {
		r.refused, r.sent = 0, sent
		return
	}
	r.attempt--
	r.refused++
	r.err = err.Error()
	dead := r.refused >= mostRefused
	if dead {
		t.end(r, scheduler.RunDead)
	} else {
		r.state, r.deadline = scheduler.RunWaiting, time.Time{}
		r.ready = t.Now.Add(min(longestWait, refusedWait<<(r.refused-1)))
	}
	t.warn("edda: the message of a run could not be sent", "manifest", f.Manifest, "run", f.Run, "times", r.refused,
		"dead", dead, "error", err)
}

func (t *Table) warn(text string, args ...any) {
	if t.Warn != nil {
		t.Warn(text, args...)
	}
}
