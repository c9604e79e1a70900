package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/engine/timetable"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Scheduler sends the messages of manifests into its bus. It takes no lease and does not poll: a manifest fires at its
// due time. Groups have no limits. Its methods behave like the methods of the same names of *scheduler.Scheduler and
// *scheduler.Reports.
type Scheduler struct {
	bus     *Bus
	running sync.Mutex // held by Run

	// guarded by the bus's mutex
	table   *timetable.Table
	touched bool            // the table has changed since the last cycle
	next    time.Time       // when something in it is due next, as of then; zero is never
	lines   []line          // lines to log
	life    context.Context // the context of Run
}

// line is a warning about a run.
type line struct {
	text string
	args []any
}

// NewScheduler makes a scheduler of manifests, which are declared from now on. Its error lists all their faults.
func NewScheduler(b *Bus, manifests ...scheduler.Manifest) (*Scheduler, error) {
	if b == nil {
		return nil, errors.New("new scheduler: the bus is nil")
	}
	stored := slices.Clone(manifests)
	var faults []error
	for n, m := range stored {
		var err error
		if stored[n].Message, err = b.encode(m.Message); err != nil {
			faults = append(faults, fmt.Errorf("manifest %.140q: %w", m.Name, err))
		}
	}
	table, err := timetable.New(b.Now(), stored...)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("new scheduler: %w", err)
	}
	s := &Scheduler{bus: b, table: table, touched: true}
	table.NewID, table.Send, table.Warn = newID, s.send, s.warn
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runners = append(b.runners, s)
	return s, nil
}

// encode encodes a message, as a stored manifest has it.
func (b *Bus) encode(m saga.Message) (saga.Message, error) {
	if m == nil {
		return nil, nil
	}
	rt := saga.Runtime{Now: b.Now(), NewID: newID, Codec: b.codec}
	out, err := rt.Compose(saga.Command, m)
	if err != nil {
		return m, err
	}
	return saga.Raw{Name: out.Info.Kind, Body: out.Body}, nil
}

// send puts the message of an attempt into its queue. The caller holds the bus's mutex.
func (s *Scheduler) send(f timetable.Firing) (saga.ID, error) {
	rt := saga.Runtime{Now: s.bus.now(), NewID: newID, Outgoing: s.bus.hooks.Outgoing, Caller: s.life}
	out, err := rt.Compose(saga.Command, f.Message, saga.WithFiring(f.Firing))
	if err != nil {
		return saga.ID{}, err
	}
	to, err := s.bus.targets(&out, nil)
	if err != nil {
		return saga.ID{}, err
	}
	s.bus.deliver(&out, to)
	return out.Info.ID, nil
}

func (s *Scheduler) warn(text string, args ...any) { s.lines = append(s.lines, line{text, args}) }

// mostCycles limits the work that one change of the bus may cause, because it holds the mutex.
const mostCycles = 1000

// cycle evaluates the table, if something may be due. The caller holds the bus's mutex.
func (s *Scheduler) cycle() {
	now := s.bus.now()
	if !s.touched && (s.next.IsZero() || s.next.After(now)) {
		return
	}
	s.table.Now, s.touched = now, false
	for n := range mostCycles {
		if !s.table.Cycle() {
			break
		}
		s.touched = n == mostCycles-1 // the next change continues
	}
	s.next = s.table.Upcoming()
}

func (s *Scheduler) begun() bool { return slices.Contains(s.bus.schedules, s) }

// Name returns "scheduler".
func (s *Scheduler) Name() string { return "scheduler" }

// Run sends due messages until ctx ends, and then returns nil. It returns scheduler.ErrRunning if called twice.
func (s *Scheduler) Run(ctx context.Context) error {
	if !s.running.TryLock() {
		return fmt.Errorf("run the scheduler: %w", scheduler.ErrRunning)
	}
	defer s.running.Unlock()
	b := s.bus
	b.locked(func() { s.life = ctx; b.schedules = append(b.schedules, s); b.change() })
	defer b.locked(func() {
		b.schedules = slices.DeleteFunc(b.schedules, func(other *Scheduler) bool { return other == s })
	})
	for ctx.Err() == nil {
		wait, changed, lines := forEver, (<-chan struct{})(nil), []line(nil)
		b.locked(func() {
			switch {
			case s.touched:
				wait = 0
			case b.real && !s.next.IsZero():
				wait = time.Until(s.next)
			}
			changed = b.changed
			lines, s.lines = s.lines, nil
		})
		for _, l := range lines {
			b.log.Warn(l.text, l.args...)
		}
		if run.Wait(ctx, wait, changed) == run.TimedOut {
			b.locked(b.change)
		}
	}
	return nil
}

func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// change calls f with the table, and wakes the goroutines that wait for a change of the bus.
func (s *Scheduler) change(ctx context.Context, what string, f func(t *timetable.Table) error) error {
	err := context.Cause(ctx)
	if err == nil {
		s.bus.locked(func() {
			s.table.Now, s.touched = s.bus.now(), true
			if err = f(s.table); err == nil {
				s.bus.change()
			}
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Trigger queues a run of a manifest outside of its schedule, as scheduler.Store.Trigger does.
func (s *Scheduler) Trigger(
	ctx context.Context, manifest string, input saga.Message, o scheduler.TriggerOptions,
) (id saga.ID, err error) {
	switch {
	case o.Delay < 0 || o.Delay > plan.Longest:
		return saga.ID{}, fmt.Errorf("trigger: Delay is %v, want 0 to %v", o.Delay, plan.Longest)
	case o.Priority < 0 || o.Priority > mostPriority:
		return saga.ID{}, fmt.Errorf("trigger: Priority is %d, want 0 to %d", o.Priority, mostPriority)
	}
	if input, err = s.bus.encode(input); err != nil {
		return saga.ID{}, fmt.Errorf("trigger: %w", err)
	}
	err = s.change(ctx, "trigger", func(t *timetable.Table) (err error) {
		id, err = t.Trigger(manifest, input, o.Delay, o.Priority)
		return err
	})
	return id, err
}

// Activate queues a run of a Dormant manifest on behalf of a run of its parent, as scheduler.Store.Activate does.
func (s *Scheduler) Activate(
	ctx context.Context, fire saga.Firing, manifest string, input saga.Message,
) (id saga.ID, fresh bool, err error) {
	if input, err = s.bus.encode(input); err != nil {
		return saga.ID{}, false, fmt.Errorf("activate: %w", err)
	}
	err = s.change(ctx, "activate", func(t *timetable.Table) (err error) {
		id, fresh, err = t.Activate(fire, manifest, input)
		return err
	})
	return id, fresh, err
}

// Pause stops a manifest from firing until Resume.
func (s *Scheduler) Pause(ctx context.Context, manifest, _ string) error {
	return s.change(ctx, "pause", func(t *timetable.Table) error { return t.SetPaused(manifest, true) })
}

// Resume ends a Pause. The manifest's misfire policy decides about the due times in between.
func (s *Scheduler) Resume(ctx context.Context, manifest string) error {
	return s.change(ctx, "resume", func(t *timetable.Table) error { return t.SetPaused(manifest, false) })
}

// Cancel ends a run that is open or dead, as scheduler.Store.Cancel does.
func (s *Scheduler) Cancel(ctx context.Context, id saga.ID, note string) error {
	return s.change(ctx, "cancel run "+id.String(), func(t *timetable.Table) error { return t.Cancel(id, note) })
}

// Retry queues a run again that is dead, timed out, cancelled or waiting, as scheduler.Store.Retry does.
func (s *Scheduler) Retry(ctx context.Context, id saga.ID, note string) error {
	return s.change(ctx, "retry run "+id.String(), func(t *timetable.Table) error { return t.Retry(id, note) })
}

// RunOf returns a run. It returns scheduler.ErrNoRun if the run does not exist.
func (s *Scheduler) RunOf(ctx context.Context, id saga.ID) (info scheduler.RunInfo, err error) {
	err = context.Cause(ctx)
	if err == nil {
		s.bus.locked(func() { info, err = s.table.Run(id) })
	}
	return info, err
}

// RunsOf returns the runs of a manifest, the oldest first. It keeps the newest 10,000 ended runs.
func (s *Scheduler) RunsOf(ctx context.Context, manifest string) (all []scheduler.RunInfo, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.bus.locked(func() { all, err = s.table.Runs(manifest) })
	return all, err
}

// End ends an attempt whose work continued elsewhere, as scheduler.Reports.End does. Until then only its Timeout limits
// such a run, because it gives no sign of life.
func (s *Scheduler) End(ctx context.Context, id saga.ID, attempt int, failure error) error {
	outcome, text := runs.Succeeded, ""
	if permanent := (*saga.PermanentError)(nil); errors.As(failure, &permanent) {
		outcome, text = runs.Dead, deadletter.ErrorText(failure)
	} else if failure != nil {
		outcome, text = runs.Failed, deadletter.ErrorText(failure)
	}
	return s.change(ctx, fmt.Sprintf("end run %s, attempt %d", id, attempt), func(t *timetable.Table) error {
		if _, err := t.Run(id); err != nil {
			return err
		}
		f := &saga.Firing{Run: id, Attempt: attempt}
		if !t.End(f, outcome, text) && !t.EndedSo(f, outcome) {
			return scheduler.ErrNotCurrent
		}
		return nil
	})
}

const mostPriority = 31

// checkRun returns whether an attempt is current, as a code of package runs.
func (b *Bus) checkRun(f *saga.Firing) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answerOf(f)
}

// tables iterates over the schedulers of the bus.
func (w *world) tables(yield func(*Scheduler) bool) {
	for _, r := range w.runners {
		if s, ok := r.(*Scheduler); ok && !yield(s) {
			return
		}
	}
}

func (w *world) answerOf(f *saga.Firing) int32 {
	for s := range w.tables {
		if answer := s.table.Check(f); answer != runs.Missing {
			return answer
		}
	}
	return runs.Missing
}

// isOpen reports whether a run is active.
func (w *world) isOpen(run saga.ID) bool {
	for s := range w.tables {
		if info, err := s.table.Run(run); err == nil {
			return info.State == scheduler.RunActive
		}
	}
	return false
}

// endRun records the outcome of an attempt.
func (w *world) endRun(f *saga.Firing, outcome, text string) {
	for s := range w.tables {
		s.table.Now, s.touched = w.now(), true
		s.table.End(f, outcome, text)
	}
}
