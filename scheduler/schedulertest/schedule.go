package schedulertest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/plan"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Schedule holds manifests, their runs and a clock. It belongs to one goroutine.
type Schedule struct {
	t   testing.TB
	now time.Time

	manifests []*manifest // in the order in which they were declared
	runs      []*run      // that wait, are queued or active
	known     map[saga.ID]*run
	handlers  map[string]func(Firing) error
	fired     []Firing // in the Advance that goes on
}

// Firing is one message that a manifest emitted: an attempt of a run.
type Firing struct {
	saga.Fire
	At      time.Time // when it was sent
	Message saga.Message
}

type manifest struct {
	scheduler.Manifest
	numbers
	plan   *plan.Plan
	due    time.Time // zero is none
	run    *run      // the scheduled one that it waits for
	held   *run      // the dead one that holds it
	paused bool      // by Pause
}

func (m *manifest) live() bool { return !m.paused && !m.Paused }

// idle manifests are evaluated when their due has come.
func (m *manifest) idle() bool { return m.live() && m.run == nil && m.held == nil && !m.due.IsZero() }

type run struct {
	id         saga.ID
	manifest   *manifest
	origin     origin
	state      scheduler.RunState
	due, ready time.Time
	deadline   time.Time // of an active one; zero is none
	attempt    int
	message    saga.Message
}

type origin uint8

const (
	scheduled origin = iota
	manual
	activation
)

// New declares the manifests at start. It fails t when one of them has a fault, or two have one name.
func New(t testing.TB, start time.Time, manifests ...scheduler.Manifest) *Schedule {
	t.Helper()
	s := &Schedule{
		t: t, now: start.Truncate(time.Microsecond), known: map[saga.ID]*run{},
		handlers: map[string]func(Firing) error{},
	}
	all, err := read(manifests)
	if err != nil {
		t.Fatalf("schedulertest: %v", err)
	}
	s.manifests = all
	for _, m := range all {
		m.due = m.plan.First(s.now)
	}
	return s
}

// Now is the clock.
func (s *Schedule) Now() time.Time { return s.now }

// Handle ends each firing of a manifest when it is sent: nil as succeeded, a saga.Permanent error as dead, another one
// as failed.
func (s *Schedule) Handle(manifest string, handler func(Firing) error) {
	s.t.Helper()
	s.must(manifest)
	s.handlers[manifest] = handler
}

// Due is the next due time of a manifest, zero if there is none. What fires then may yet wait: for the end of a run,
// for Resume.
func (s *Schedule) Due(manifest string) time.Time {
	s.t.Helper()
	return s.must(manifest).due
}

// Held reports whether a dead run keeps the manifest from firing.
func (s *Schedule) Held(manifest string) bool {
	s.t.Helper()
	return s.must(manifest).held != nil
}

// State returns the state of the run of a firing.
func (s *Schedule) State(f Firing) scheduler.RunState {
	s.t.Helper()
	return s.runOf(f).state
}

// Pause lets the manifest fire no more until Resume. Then its misfire policy judges what fell due.
func (s *Schedule) Pause(manifest string) {
	s.t.Helper()
	s.must(manifest).paused = true
}

// Resume ends a Pause. What fires is in the next Advance.
func (s *Schedule) Resume(manifest string) {
	s.t.Helper()
	s.must(manifest).paused = false
}

// Trigger queues a run, whatever the schedule says. It fires in the next Advance, with input or, if that is nil, with
// the message of the manifest.
func (s *Schedule) Trigger(manifest string, input saga.Message) {
	s.t.Helper()
	m := s.must(manifest)
	s.queue(&run{manifest: m, origin: manual, due: s.now, ready: s.now, message: s.input(m, input)})
}

// Activate queues a run of a Dormant manifest on behalf of a firing of its parent. It reports whether that is new:
// while one is open it changes nothing.
func (s *Schedule) Activate(by Firing, manifest string, input saga.Message) (fresh bool) {
	s.t.Helper()
	m, parent := s.must(manifest), s.runOf(by)
	if m.plan.Rule.Kind != plan.Dormant || m.plan.Rule.Parent != by.Manifest || parent.state != scheduler.RunActive ||
		parent.attempt != by.Attempt {
		s.t.Fatalf("schedulertest: activate %s: want an active run of its parent %q, and %s is %s", manifest,
			m.plan.Rule.Parent, by.Manifest, parent.state)
	}
	for _, r := range s.known {
		if r.manifest == m && r.origin == activation && !r.state.Ended() {
			return false
		}
	}
	s.queue(&run{manifest: m, origin: activation, due: parent.due, ready: s.now, message: s.input(m, input)})
	return true
}

func (s *Schedule) input(m *manifest, input saga.Message) saga.Message {
	s.t.Helper()
	if input == nil {
		return m.Message
	}
	if input.Kind() != m.Message.Kind() {
		s.t.Fatalf("schedulertest: manifest %s sends %s: there is no run of it with %s", m.Name, m.Message.Kind(),
			input.Kind())
	}
	return input
}

func (s *Schedule) must(name string) *manifest {
	s.t.Helper()
	at := slices.IndexFunc(s.manifests, func(m *manifest) bool { return m.Name == name })
	if at < 0 {
		s.t.Fatalf("schedulertest: there is no manifest %q", name)
		return nil
	}
	return s.manifests[at]
}

func (s *Schedule) runOf(f Firing) *run {
	s.t.Helper()
	r := s.known[f.Run]
	if r == nil {
		s.t.Fatalf("schedulertest: there is no run %v of manifest %q here", f.Run, f.Manifest)
	}
	return r
}

func (s *Schedule) queue(r *run) {
	binary.BigEndian.PutUint64(r.id[8:], uint64(len(s.known)+1))
	r.state = scheduler.RunQueued
	if r.ready.After(s.now) {
		r.state = scheduler.RunWaiting
	}
	s.known[r.id] = r
	s.runs = append(s.runs, r)
}

// inOrder is the order of dispatch.
func inOrder(a, b *run) int {
	return cmp.Or(cmp.Compare(b.manifest.Priority, a.manifest.Priority), a.ready.Compare(b.ready),
		slices.Compare(a.id[:], b.id[:]))
}
