package schedulertest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/schedulertest"
)

type settle struct{ Shop string }

func (settle) Kind() string { return "settle" }

var start = time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)

func told(fired []schedulertest.Firing) string {
	var lines []string
	for _, f := range fired {
		lines = append(lines, fmt.Sprintf("%s %v due %s sent %s attempt %d", f.Manifest, f.Message,
			f.Due.Format("02 15:04 -0700"), f.At.Format("02 15:04"), f.Attempt))
	}
	return strings.Join(lines, "\n")
}

func want(t *testing.T, fired []schedulertest.Firing, lines ...string) {
	t.Helper()
	if got, want := told(fired), strings.Join(lines, "\n"); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

// The night when the clock goes forward, with a handler that fails once, and a report that follows.
func TestANightInMemory(t *testing.T) {
	t.Parallel()
	s := schedulertest.New(t, start,
		scheduler.Manifest{Name: "settle", When: scheduler.Cron("30 2 * * *", "Europe/Berlin"),
			Message: settle{"north"}},
		scheduler.Manifest{Name: "report", When: scheduler.After("settle"), Message: saga.Raw{Name: "report"}},
	)
	s.Handle("settle", func(f schedulertest.Firing) error {
		if f.Attempt == 1 && f.Due.Day() == 29 {
			return errors.New("the ledger is locked")
		}
		return nil
	})
	s.Handle("report", func(schedulertest.Firing) error { return nil })
	want(t, s.Advance(48*time.Hour),
		"settle {north} due 28 02:30 +0100 sent 28 01:30 attempt 1",
		"report {report []} due 28 01:30 +0000 sent 28 01:30 attempt 1",
		"settle {north} due 29 03:00 +0200 sent 29 01:00 attempt 1",
		"settle {north} due 29 03:00 +0200 sent 29 01:05 attempt 2",
		"report {report []} due 29 01:00 +0000 sent 29 01:05 attempt 1",
	)
	if due := s.Due("settle"); !due.Equal(time.Date(2026, 3, 30, 0, 30, 0, 0, time.UTC)) {
		t.Errorf("the next is due at %v", due)
	}
}

func TestALateHandlerChangesNothing(t *testing.T) {
	t.Parallel()
	s := schedulertest.New(t, start, scheduler.Manifest{Name: "settle", When: scheduler.Every(time.Hour),
		Message: settle{}, Timeout: time.Minute})
	fired := s.Advance(2 * time.Minute)
	if state := s.State(fired[0]); state != scheduler.RunTimedOut {
		t.Errorf("it is %s after its timeout", state)
	}
	if s.Succeed(fired[0]) || s.Fail(fired[0]) || s.Kill(fired[0]) {
		t.Error("a run that timed out ended once more")
	}
	if !s.Retry(fired[0]) || len(s.Advance(0)) != 1 {
		t.Error("it was not sent again")
	}
	if s.Fail(fired[0]) {
		t.Error("the first attempt ended in the time of the second")
	}
}

func TestADeadRunHolds(t *testing.T) {
	t.Parallel()
	s := schedulertest.New(t, start, scheduler.Manifest{Name: "settle", When: scheduler.Every(time.Hour),
		Message: settle{}, Timeout: scheduler.NoTimeout})
	s.Handle("settle", func(schedulertest.Firing) error { return saga.Permanent(errors.New("no such shop")) })
	fired := s.Advance(100 * time.Hour)
	if len(fired) != 1 || !s.Held("settle") || s.State(fired[0]) != scheduler.RunDead {
		t.Fatalf("%d firings, held %v, the first is %s", len(fired), s.Held("settle"), s.State(fired[0]))
	}
	s.Cancel(fired[0])
	if s.Held("settle") || len(s.Advance(0)) != 1 {
		t.Error("it is held after its dead run was cancelled")
	}
}

func TestTriggerWithAnotherMessage(t *testing.T) {
	t.Parallel()
	s := schedulertest.New(t, start, scheduler.Manifest{Name: "settle", When: scheduler.OnDemand(),
		Message: settle{"north"}})
	s.Trigger("settle", settle{"south"})
	want(t, s.Advance(0), "settle {south} due 27 12:00 +0000 sent 27 12:00 attempt 1")
}

func TestVarianceDelaysARun(t *testing.T) {
	t.Parallel()
	m := scheduler.Manifest{Name: "settle", When: scheduler.Every(time.Hour), Message: settle{},
		Variance: 10 * time.Minute, Overlap: true}
	s := schedulertest.New(t, start, m)
	late := map[time.Duration]bool{}
	for _, f := range s.Advance(100 * time.Hour) {
		by := f.At.Sub(f.Due)
		if by < 0 || by > m.Variance {
			t.Fatalf("due %v, sent %v: want 0 to %v between", f.Due, f.At, m.Variance)
		}
		late[by] = true
	}
	if len(late) < 90 {
		t.Errorf("100 runs were late by %d different times", len(late))
	}
}

// complaint is a testing.TB that records failures instead of failing.
type complaint struct {
	testing.TB
	text string
}

type stopped struct{}

func (c *complaint) Helper() {}
func (c *complaint) Fatalf(format string, args ...any) {
	c.text = fmt.Sprintf(format, args...)
	panic(stopped{})
}

func TestMisuseFailsTheTest(t *testing.T) {
	t.Parallel()
	good := scheduler.Manifest{Name: "settle", When: scheduler.Every(time.Hour), Message: settle{}}
	for wanted, misuse := range map[string]func(t testing.TB){
		"Retries": func(t testing.TB) {
			schedulertest.New(t, start, scheduler.Manifest{Name: "m", When: good.When, Message: settle{}, Retries: 101})
		},
		"declared twice":                     func(t testing.TB) { schedulertest.New(t, start, good, good) },
		`"other": there is no such manifest`: func(t testing.TB) { schedulertest.New(t, start, good).Pause("other") },
		"want 0 or more":                     func(t testing.TB) { schedulertest.New(t, start, good).Advance(-1) },
		"down for":                           func(t testing.TB) { schedulertest.New(t, start, good).Down(-1) },
		"no run of it with": func(t testing.TB) {
			schedulertest.New(t, start, good).Trigger("settle",
				saga.Raw{Name: "other"})
		},
		"there is no such run": func(t testing.TB) {
			schedulertest.New(t, start, good).Succeed(schedulertest.Firing{})
		},
		"an active run of": func(t testing.TB) {
			s := schedulertest.New(t, start, good)
			s.Activate(s.Advance(0)[0],
				"settle", nil)
		},
	} {
		c := &complaint{TB: t}
		func() {
			defer func() {
				if r := recover(); r != nil && r != (stopped{}) {
					panic(r)
				}
			}()
			misuse(c)
		}()
		if !strings.Contains(c.text, wanted) {
			t.Errorf("got %q, want %q", c.text, wanted)
		}
	}
}
