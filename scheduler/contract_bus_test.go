package scheduler_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// busInMemory is the provider that a program without a database uses. Its handler leaves each run to the scenario.
type busInMemory struct {
	t     *testing.T
	b     *memory.Bus
	s     *memory.Scheduler
	start time.Time
	stop  func() error

	mu    sync.Mutex // guards the following fields
	shots []shot
	last  map[string]saga.Firing
}

func newBusInMemory(t *testing.T, start time.Time, manifests []scheduler.Manifest) *busInMemory {
	t.Helper()
	m := &busInMemory{t: t, start: start, last: map[string]saga.Firing{}}
	var err error
	m.b, err = memory.New(memory.Options{Start: start, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if m.s, err = memory.NewScheduler(m.b, manifests...); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, one := range manifests {
		kinds = append(kinds, one.Message.Kind())
	}
	_, err = memory.NewEndpoint(m.b, "all", bus.EndpointOptions{Concurrency: 1}, bus.HandleRaw(m.handle, kinds...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.end)
	return m
}

// begin starts the bus if it is not running.
func (m *busInMemory) begin() {
	if m.stop == nil {
		stop, err := m.b.Start(m.t.Context())
		m.must(err)
		m.stop = stop
	}
}

func (m *busInMemory) end() {
	if m.stop != nil {
		m.must(m.stop())
		m.stop = nil
	}
}

func (m *busInMemory) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *busInMemory) handle(ctx *bus.Context, d *saga.Delivery) error {
	ctx.LeaveRun()
	m.mu.Lock()
	defer m.mu.Unlock()
	f := *d.Info.Firing
	m.last[f.Manifest] = f
	m.shots = append(m.shots, shot{f.Manifest, f.Attempt, f.Due.Sub(m.start), d.Info.Sent.Sub(m.start)})
	return nil
}

func (m *busInMemory) advance(d time.Duration) []shot {
	m.begin()
	m.must(m.b.Advance(m.t.Context(), d))
	m.mu.Lock()
	defer m.mu.Unlock()
	shots := m.shots
	m.shots = nil
	return shots
}

func (m *busInMemory) down(d time.Duration) {
	m.end()
	m.must(m.b.Advance(m.t.Context(), d))
}

func (m *busInMemory) tell(verb, manifest string) {
	m.must(m.b.Advance(m.t.Context(), 0))
	ctx := m.t.Context()
	m.mu.Lock()
	last, scan := m.last[manifest], m.last["scan"]
	m.mu.Unlock()
	m.must(map[string]func() error{
		"succeeded": func() error { return m.s.End(ctx, last.Run, last.Attempt, nil) },
		"failed":    func() error { return m.s.End(ctx, last.Run, last.Attempt, errors.New("no")) },
		"dead":      func() error { return m.s.End(ctx, last.Run, last.Attempt, saga.Permanent(errors.New("no"))) },
		"discarded": func() error { return m.s.Cancel(ctx, last.Run, "") },
		"cancel":    func() error { return m.s.Cancel(ctx, last.Run, "") },
		"retry":     func() error { return m.s.Retry(ctx, last.Run, "") },
		"pause":     func() error { return m.s.Pause(ctx, manifest, "") },
		"resume":    func() error { return m.s.Resume(ctx, manifest) },
		"trigger": func() error {
			_, err := m.s.Trigger(ctx, manifest, nil, scheduler.TriggerOptions{})
			return err
		},
		"activate": func() error {
			_, _, err := m.s.Activate(ctx, scan, manifest, nil)
			return err
		},
	}[verb]())
}

// Rows S0-18 and X18.
func TestTheBusInMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, s := range contract {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
			s.tellStory(t, newBusInMemory(t, start, s.manifests(start)))
		})
	}
}
