package scheduler_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/scheduler/schedulertest"
)

// timetable is the provider of package schedulertest.
type timetable struct {
	t     *testing.T
	s     *schedulertest.Schedule
	start time.Time
	last  map[string]schedulertest.Firing
}

func (m *timetable) advance(d time.Duration) (shots []shot) {
	for _, f := range m.s.Advance(d) {
		m.last[f.Manifest] = f
		shots = append(shots, shot{f.Manifest, f.Attempt, f.Due.Sub(m.start), f.At.Sub(m.start)})
	}
	return shots
}

func (m *timetable) down(d time.Duration) { m.s.Down(d) }

func (m *timetable) tell(verb, manifest string) {
	last, ok := m.last[manifest], true
	switch verb {
	case "succeeded":
		ok = m.s.Succeed(last)
	case "failed":
		ok = m.s.Fail(last)
	case "dead":
		ok = m.s.Kill(last)
	case "discarded":
		ok = m.s.Discard(last)
	case "cancel":
		ok = m.s.Cancel(last)
	case "retry":
		ok = m.s.Retry(last)
	case "pause":
		m.s.Pause(manifest)
	case "resume":
		m.s.Resume(manifest)
	case "trigger":
		m.s.Trigger(manifest, nil)
	case "activate":
		m.s.Activate(m.last["scan"], manifest, nil)
	}
	if !ok {
		m.t.Fatalf("%s %s: its run does not stand like that", verb, manifest)
	}
}

// Row X18.
func TestTheProviderInMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, s := range contract {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
			s.tellStory(t, &timetable{t, schedulertest.New(t, start, s.manifests(start)...), start,
				map[string]schedulertest.Firing{}})
		})
	}
}
