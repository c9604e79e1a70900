package timetable

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// Table holds manifests, their runs and the time.
type Table struct {
	Now time.Time // the owner's time; it never decreases
	// Send sends the message of an attempt, and returns its id. If it fails, the attempt does not count and is tried
	// again.
	Send  func(Firing) (saga.ID, error)
	NewID func() saga.ID                 // of runs; nil counts from 1
	Warn  func(text string, args ...any) // receives a line of the log, with the fields of a server's log; nil drops it

	manifests []*manifest // in the order of declaration
	runs      []*run      // waiting, queued or active runs
	known     map[saga.ID]*run
}

// Firing is one message that a manifest emitted: an attempt of a run.
type Firing struct {
	saga.Firing
	At      time.Time // when it was sent
	Message saga.Message
}

type manifest struct {
	scheduler.Manifest
	numbers
	plan   *plan.Plan
	due    time.Time // zero: not due
	run    *run      // the scheduled run that it waits for
	held   *run      // the dead run that holds it
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
	deadline   time.Time // of an active run; zero means no deadline
	attempt    int
	refused    int // times in a row that its message could not be sent
	priority   int
	message    saga.Message
	sent       saga.ID  // the message of the last attempt
	outcomes   []string // of the attempts; "" while an attempt has not ended
	err        string   // of the last attempt
	note       string   // of an operator
	queued     time.Time
	ended      time.Time
}

type origin uint8

const (
	scheduled origin = iota
	dependent
	manual
	activation
)

func (o origin) String() string {
	return [...]string{"schedule", "dependent", "manual", "activation"}[o]
}

// New declares the manifests at start. It returns an error if a manifest has a fault, or two have the same name.
func New(start time.Time, manifests ...scheduler.Manifest) (*Table, error) {
	all, err := read(manifests)
	if err != nil {
		return nil, err
	}
	t := &Table{Now: start.Truncate(time.Microsecond), known: map[saga.ID]*run{}, manifests: all}
	for _, m := range all {
		m.due = m.plan.First(t.Now)
	}
	return t, nil
}

// Due returns the next due time of a manifest, or zero.
func (t *Table) Due(manifest string) (time.Time, error) {
	m, err := t.find(manifest)
	if err != nil {
		return time.Time{}, err
	}
	return m.due, nil
}

// Held reports whether a dead run keeps the manifest from firing.
func (t *Table) Held(manifest string) (bool, error) {
	m, err := t.find(manifest)
	return err == nil && m.held != nil, err
}

// SetPaused stops the firings of the manifest, or allows them again. Then its misfire policy decides about the due
// times that passed.
func (t *Table) SetPaused(manifest string, paused bool) error {
	m, err := t.find(manifest)
	if err == nil {
		m.paused = paused
	}
	return err
}

// Trigger queues a run, whatever the schedule is, with input or, if that is nil, with the message of the manifest. A
// priority of 0 means the manifest's own.
func (t *Table) Trigger(manifest string, input saga.Message, delay time.Duration, priority int) (saga.ID, error) {
	m, err := t.find(manifest)
	if err != nil {
		return saga.ID{}, err
	}
	message, err := inputOf(m, input)
	if err != nil {
		return saga.ID{}, err
	}
	due := t.Now.Add(delay)
	r := &run{manifest: m, origin: manual, due: due, ready: due, message: message, priority: priority}
	t.queue(r)
	return r.id, nil
}

// Activate queues a run of a Dormant manifest on behalf of an attempt of its parent. It reports whether the run is
// new: while a run is open, Activate changes nothing.
func (t *Table) Activate(by saga.Firing, manifest string, input saga.Message) (id saga.ID, fresh bool, err error) {
	m, err := t.find(manifest)
	if err != nil {
		return saga.ID{}, false, err
	}
	parent := t.known[by.Run]
	switch {
	case parent == nil || m.plan.Rule.Kind != plan.Dormant || m.plan.Rule.Parent != by.Manifest:
		return saga.ID{}, false, fmt.Errorf("activate %s: want an active run of its parent %q", manifest,
			m.plan.Rule.Parent)
	case t.Check(&by) != runs.Current:
		return saga.ID{}, false, fmt.Errorf("activate %s: want an active run of its parent %q: %w", manifest,
			m.plan.Rule.Parent, scheduler.ErrNotCurrent)
	}
	for _, r := range t.known {
		if r.manifest == m && r.origin == activation && !r.state.Ended() {
			return r.id, false, nil
		}
	}
	message, err := inputOf(m, input)
	if err != nil {
		return saga.ID{}, false, err
	}
	r := &run{manifest: m, origin: activation, due: parent.due, ready: t.Now, message: message}
	t.queue(r)
	return r.id, true, nil
}

func inputOf(m *manifest, input saga.Message) (saga.Message, error) {
	switch {
	case input == nil:
		return m.Message, nil
	case input.Kind() != m.Message.Kind():
		return nil, fmt.Errorf("manifest %s sends %s: there is no run of it with %.80q", m.Name, m.Message.Kind(),
			input.Kind())
	}
	return input, nil
}

func (t *Table) find(name string) (*manifest, error) {
	at := slices.IndexFunc(t.manifests, func(m *manifest) bool { return m.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("manifest %.140q: %w", name, scheduler.ErrNoManifest)
	}
	return t.manifests[at], nil
}

func (t *Table) findRun(id saga.ID) (*run, error) {
	r := t.known[id]
	if r == nil {
		return nil, fmt.Errorf("run %v: %w", id, scheduler.ErrNoRun)
	}
	return r, nil
}

func (t *Table) queue(r *run) {
	if t.NewID != nil {
		r.id = t.NewID()
	} else {
		binary.BigEndian.PutUint64(r.id[8:], uint64(len(t.known)+1))
	}
	r.state, r.queued = scheduler.RunQueued, t.Now
	r.priority = cmp.Or(r.priority, r.manifest.Priority)
	if r.ready.After(t.Now) {
		r.state = scheduler.RunWaiting
	}
	t.known[r.id] = r
	t.runs = append(t.runs, r)
	if len(t.known) > 2*mostKept {
		t.trim()
	}
}

const mostKept = 10_000 // runs that have ended

// trim deletes the oldest runs that have ended.
func (t *Table) trim() {
	var ended []saga.ID
	for id, r := range t.known {
		if r.state.Ended() {
			ended = append(ended, id)
		}
	}
	slices.SortFunc(ended, saga.ID.Compare)
	for _, id := range ended[:max(0, len(ended)-mostKept)] {
		delete(t.known, id)
	}
}

// inOrder compares runs by the order of dispatch.
func inOrder(a, b *run) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), a.ready.Compare(b.ready),
		slices.Compare(a.id[:], b.id[:]))
}

// Run returns a description of a run.
func (t *Table) Run(id saga.ID) (scheduler.RunInfo, error) {
	r, err := t.findRun(id)
	if err != nil {
		return scheduler.RunInfo{}, err
	}
	return r.info(), nil
}

func (r *run) info() scheduler.RunInfo {
	return scheduler.RunInfo{
		ID: r.id, Manifest: r.manifest.Name, Origin: r.origin.String(), State: r.state, Due: r.due, Ready: r.ready,
		Priority: r.priority, Kind: r.message.Kind(), Attempt: r.attempt, Refused: r.refused, Message: r.sent,
		Deadline: r.deadline, Queued: r.queued, Ended: r.ended, Error: r.err, Note: r.note,
	}
}

// Runs returns descriptions of the runs of a manifest, the oldest first.
func (t *Table) Runs(manifest string) (all []scheduler.RunInfo, err error) {
	if _, err := t.find(manifest); err != nil {
		return nil, err
	}
	for _, r := range t.known {
		if r.manifest.Name == manifest {
			all = append(all, r.info())
		}
	}
	slices.SortFunc(all, func(a, b scheduler.RunInfo) int { return a.ID.Compare(b.ID) })
	return all, nil
}
