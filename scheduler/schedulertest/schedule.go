package schedulertest

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/engine/timetable"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Schedule holds manifests, their runs and a clock. It is not safe for concurrent use.
type Schedule struct {
	t        testing.TB
	table    *timetable.Table
	handlers map[string]func(Firing) error
	fired    []Firing // by the Advance that is running
}

// Firing is one message that a manifest sent: an attempt of a run.
type Firing struct {
	saga.Firing
	At      time.Time // when it was sent
	Message saga.Message
}

// New declares the manifests at start. It fails t if one of them has a fault, or two have the same name.
func New(t testing.TB, start time.Time, manifests ...scheduler.Manifest) *Schedule {
	t.Helper()
	table, err := timetable.New(start, manifests...)
	if err != nil {
		t.Fatalf("schedulertest: %v", err)
	}
	s := &Schedule{t: t, table: table, handlers: map[string]func(Firing) error{}}
	table.Send = func(f timetable.Firing) (saga.ID, error) {
		s.send(Firing(f))
		return saga.ID{}, nil
	}
	return s
}

// must fails the test if err is not nil, else returns v.
func must[V any](s *Schedule, v V, err error) V {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("schedulertest: %v", err)
	}
	return v
}

// Now returns the time of the clock.
func (s *Schedule) Now() time.Time { return s.table.Now }

// Handle makes handler end each firing of a manifest when it is sent: nil is Succeed, a saga.Permanent error is Kill,
// any other error is Fail.
func (s *Schedule) Handle(manifest string, handler func(Firing) error) {
	s.t.Helper()
	s.Due(manifest)
	s.handlers[manifest] = handler
}

// Due returns the next due time of a manifest, zero if there is none. At that time the manifest may still have to
// wait, for the end of a run or for Resume.
func (s *Schedule) Due(manifest string) time.Time {
	s.t.Helper()
	due, err := s.table.Due(manifest)
	return must(s, due, err)
}

// Held reports whether a dead run keeps the manifest from firing.
func (s *Schedule) Held(manifest string) bool {
	s.t.Helper()
	held, err := s.table.Held(manifest)
	return must(s, held, err)
}

// State returns the state of the run of a firing.
func (s *Schedule) State(f Firing) scheduler.RunState {
	s.t.Helper()
	info, err := s.table.Run(f.Run)
	return must(s, info, err).State
}

// Pause stops the manifest from firing until Resume. Then its misfire policy decides about the due times in between.
func (s *Schedule) Pause(manifest string) {
	s.t.Helper()
	must(s, 0, s.table.SetPaused(manifest, true))
}

// Resume ends a Pause. The next Advance returns the firings.
func (s *Schedule) Resume(manifest string) {
	s.t.Helper()
	must(s, 0, s.table.SetPaused(manifest, false))
}

// Trigger queues a run, whatever the schedule is. It fires in the next Advance, with input or, if that is nil, with
// the message of the manifest.
func (s *Schedule) Trigger(manifest string, input saga.Message) {
	s.t.Helper()
	id, err := s.table.Trigger(manifest, input, 0, 0)
	must(s, id, err)
}

// Activate queues a run of a Dormant manifest on behalf of a firing of its parent. It reports whether the run is new:
// if one is open it changes nothing.
func (s *Schedule) Activate(by Firing, manifest string, input saga.Message) (fresh bool) {
	s.t.Helper()
	_, fresh, err := s.table.Activate(by.Firing, manifest, input)
	return must(s, fresh, err)
}

// Succeed ends the run of a firing as succeeded: its manifest may fire again, and its followers are due. It reports
// whether the firing was current; if not, nothing changes.
func (s *Schedule) Succeed(f Firing) (current bool) { return s.close(f, runs.Succeeded) }

// Fail ends an attempt as failed. Its run waits for the next attempt, or is dead if the manifest has no retries left.
// It reports whether the firing was current.
func (s *Schedule) Fail(f Firing) (current bool) { return s.close(f, runs.Failed) }

// Kill ends an attempt with a failure that a retry cannot cure: the run is dead. It reports whether the firing was
// current.
func (s *Schedule) Kill(f Firing) (current bool) { return s.close(f, runs.Dead) }

// Discard cancels the run, like a handler that discards its message. It reports whether the firing was current.
func (s *Schedule) Discard(f Firing) (current bool) { return s.close(f, runs.Discarded) }

func (s *Schedule) close(f Firing, outcome string) (current bool) {
	s.t.Helper()
	s.State(f) // fails the test if the run is unknown
	return s.table.End(&f.Firing, outcome, "")
}

// Cancel ends a run that is open or dead, like an operator, and reports whether it was.
func (s *Schedule) Cancel(f Firing) (open bool) {
	s.t.Helper()
	if s.State(f).Ended() {
		return false
	}
	must(s, 0, s.table.Cancel(f.Run, ""))
	return true
}

// Retry queues a run that is dead, timed out, cancelled or waiting again, like an operator; it fires in the next
// Advance. It reports whether the run was queued.
func (s *Schedule) Retry(f Firing) (again bool) {
	s.t.Helper()
	if state := s.State(f); state == scheduler.RunSucceeded || state == scheduler.RunActive {
		return false
	}
	err := s.table.Retry(f.Run, "")
	return err == nil
}
