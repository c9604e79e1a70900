package timetable_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/engine/timetable"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// A run that is timed out, and due times that get no run, are reported in the words of a server's log.
func TestEndsThatNobodyAskedForAreTold(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	table, err := timetable.New(start, scheduler.Manifest{Name: "slow", When: scheduler.Every(time.Minute),
		Message: saga.Raw{Name: "slow"}, Timeout: 150 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	table.Send = func(timetable.Firing) (saga.ID, error) { return saga.ID{}, nil }
	table.Warn = func(text string, args ...any) { told = append(told, fmt.Sprint(text, args[:2])) }
	for range 4 {
		table.Cycle()
		table.Now = table.Now.Add(time.Minute)
	}
	table.Cycle()
	want := []string{"edda: a run took longer than the Timeout of its manifest, and is timed out[manifest slow]",
		"edda: due times of a manifest passed without a run[manifest slow]"}
	if !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

// A message that is sent resets the count of refusals to 0, as on a server.
func TestRefusalsAreCountedInARow(t *testing.T) {
	t.Parallel()
	table, err := timetable.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), scheduler.Manifest{Name: "m",
		When: scheduler.OnDemand(), Message: saga.Raw{Name: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	refusals, attempts := 0, []int(nil)
	table.Send = func(f timetable.Firing) (saga.ID, error) {
		if refusals++; refusals <= 4 {
			return saga.ID{}, errors.New("refused")
		}
		refusals, attempts = 0, append(attempts, f.Attempt)
		table.End(&f.Firing, runs.Failed, "no")
		return saga.ID{1}, nil
	}
	if _, err := table.Trigger("m", nil, 0, 0); err != nil {
		t.Fatal(err)
	}
	for range 120 {
		table.Cycle()
		table.Now = table.Now.Add(time.Minute)
	}
	if !slices.Equal(attempts, []int{1, 2, 3, 4}) {
		t.Errorf("attempts %v were sent, want the first and three retries", attempts)
	}
}
