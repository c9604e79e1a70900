package schedulertest

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/engine/timetable"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Schedule holds manifests, their runs and a clock. It belongs to one goroutine.
type Schedule struct {
	t        testing.TB
	table    *timetable.Table
	handlers map[string]func(Firing) error
	fired    []Firing // in the Advance that goes on
}

// Firing is one message that a manifest emitted: an attempt of a run.
type Firing struct {
	saga.Fire
	At      time.Time // when it was sent
	Message saga.Message
}

// New declares the manifests at start. It fails t when one of them has a fault, or two have one name.
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

// must fails the test if there is an error.
func must[V any](s *Schedule, v V, err error) V {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("schedulertest: %v", err)
	}
	return v
}

// Now is the clock.
func (s *Schedule) Now() time.Time { return s.table.Now }

// Handle ends each firing of a manifest when it is sent: nil as succeeded, a saga.Permanent error as dead, another one
// as failed.
func (s *Schedule) Handle(manifest string, handler func(Firing) error) {
	s.t.Helper()
	s.Due(manifest)
	s.handlers[manifest] = handler
}

// Due is the next due time of a manifest, zero if there is none. What fires then may yet wait: for the end of a run,
// for Resume.
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

// Pause lets the manifest fire no more until Resume. Then its misfire policy judges what fell due.
func (s *Schedule) Pause(manifest string) {
	s.t.Helper()
	must(s, 0, s.table.SetPaused(manifest, true))
}

// Resume ends a Pause. What fires is in the next Advance.
func (s *Schedule) Resume(manifest string) {
	s.t.Helper()
	must(s, 0, s.table.SetPaused(manifest, false))
}

// Trigger queues a run, whatever the schedule says. It fires in the next Advance, with input or, if that is nil, with
// the message of the manifest.
func (s *Schedule) Trigger(manifest string, input saga.Message) {
	s.t.Helper()
	id, err := s.table.Trigger(manifest, input, 0, 0)
	must(s, id, err)
}

// Activate queues a run of a Dormant manifest on behalf of a firing of its parent. It reports whether that is new:
// while one is open it changes nothing.
func (s *Schedule) Activate(by Firing, manifest string, input saga.Message) (fresh bool) {
	s.t.Helper()
	_, fresh, err := s.table.Activate(by.Fire, manifest, input)
	return must(s, fresh, err)
}

// Succeed ends the run of a firing well: its manifest may fire again, and those that follow it are due. It reports
// whether the firing was current; if not, nothing changes.
func (s *Schedule) Succeed(f Firing) (current bool) { return s.close(f, runs.Succeeded) }

// Fail ends an attempt. Its run waits for the next one, or is dead when the manifest has no retries left.
func (s *Schedule) Fail(f Firing) (current bool) { return s.close(f, runs.Failed) }

// Kill ends an attempt as a failure that no other attempt cures: the run is dead.
func (s *Schedule) Kill(f Firing) (current bool) { return s.close(f, runs.Dead) }

// Discard ends a run as the handler does that wants nothing of it: it is cancelled.
func (s *Schedule) Discard(f Firing) (current bool) { return s.close(f, runs.Discarded) }

func (s *Schedule) close(f Firing, outcome string) (current bool) {
	s.t.Helper()
	s.State(f) // of a run that is known
	return s.table.End(&f.Fire, outcome, "")
}

// Cancel is an operator's: it ends a run that is open or dead, and reports whether there was one.
func (s *Schedule) Cancel(f Firing) (open bool) {
	s.t.Helper()
	if s.State(f).Ended() {
		return false
	}
	must(s, 0, s.table.Cancel(f.Run, ""))
	return true
}

// Retry is an operator's: a run that is dead, timed out, cancelled or waiting fires again in the next Advance. It
// reports whether it does.
func (s *Schedule) Retry(f Firing) (again bool) {
	s.t.Helper()
	if state := s.State(f); state == scheduler.RunSucceeded || state == scheduler.RunActive {
		return false
	}
	err := s.table.Retry(f.Run, "")
	return err == nil
}
