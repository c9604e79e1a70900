package recoverability_test

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func limited(t *testing.T, b recoverability.Budget, p recoverability.Policy) recoverability.Policy {
	t.Helper()
	p, err := b.Limit(p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// atOnce passes n first failures to p and counts the immediate retries. All others must be delayed retries.
func atOnce(t *testing.T, p recoverability.Policy, n int, f recoverability.Failure) (count int) {
	t.Helper()
	for i := range n {
		f.Info = saga.Info{ID: saga.ID{byte(i >> 8), byte(i)}, Attempt: 1}
		f.Err = errBoom
		switch v := recoverability.Resolve(p, f); {
		case v.Action == recoverability.ActionRetryNow:
			count++
		case v.Action != recoverability.ActionRetryIn || v.Delay < 4500*time.Millisecond ||
			v.Delay > 5500*time.Millisecond:
			t.Fatalf("failure %d: %+v", i, v)
		}
	}
	return count
}

func TestBudgetBoundsRetriesAtOnce(t *testing.T) {
	p := limited(t, recoverability.Budget{Burst: 50}, nil)
	steps := []struct {
		after   time.Duration
		handled int64
		want    int
	}{
		{0, 0, 50},                        // the initial tokens
		{0, 100, 10},                      // a tenth of the handled messages
		{time.Second, 100, 10},            // and ten per second
		{time.Second, 105, 0},             // half a token is not enough
		{time.Second, 110, 1},             // but is kept
		{time.Hour, 1_000_000, 50},        // no more than the burst
		{time.Hour - time.Second, 100, 0}, // the clock goes back, and the counter restarts
		{time.Hour + time.Second, 100, 10},
	}
	for n, step := range steps {
		if got := atOnce(t, p, 60, recoverability.Failure{Endpoint: "a", Now: noon.Add(step.after),
			Handled: step.handled}); got != step.want {
			t.Errorf("step %d: %d retries at once, want %d", n+1, got, step.want)
		}
	}
	if got := atOnce(t, p, 60, recoverability.Failure{Endpoint: "b", Now: noon}); got != 50 {
		t.Errorf("another endpoint had %d retries at once, want its own 50", got)
	}
}

// With an empty bucket a message gets as many attempts as with a full one.
func TestBudgetGivesNoMessageUp(t *testing.T) {
	p := limited(t, recoverability.Budget{Burst: 1}, nil)
	attempts, delays := story(t, p, errBoom, 100)
	if attempts != 24 || len(delays) != 22 {
		t.Errorf("%d attempts, %d delays; want 24, and all but one late", attempts, len(delays))
	}
	if v := recoverability.Resolve(limited(t, recoverability.Budget{}, says("x")),
		failure(1, errBoom)); v.Reason != "x" {
		t.Errorf("another decision was changed: %+v", v)
	}
	broken := limited(t, recoverability.Budget{}, func(recoverability.Failure) recoverability.Decision { return nil })
	if v := recoverability.Resolve(broken, failure(1, errBoom)); v.Err == nil {
		t.Errorf("no decision became one: %+v", v)
	}
}

func TestBudgetIsExactUnderConcurrentUse(t *testing.T) {
	p := limited(t, recoverability.Budget{Burst: 500}, nil)
	counts := make([]int, 8)
	var all sync.WaitGroup
	for n := range counts {
		all.Go(func() {
			counts[n] = atOnce(t, p, 200, recoverability.Failure{Endpoint: "a", Now: noon})
		})
	}
	all.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum != 500 {
		t.Errorf("%d retries at once, want 500", sum)
	}
}

func TestBudgetRefusesNumbersThatMakeNoSense(t *testing.T) {
	for want, b := range map[string]recoverability.Budget{
		"Share is -1":     {Share: -1},
		"Share is NaN":    {Share: math.NaN()},
		"PerSecond is -1": {PerSecond: -1},
		"Burst is -1":     {Burst: -1},
		"Delay is -1ns":   {Delay: -1},
	} {
		if p, err := b.Limit(nil); err == nil || p != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
	if _, err := (recoverability.Budget{Share: -1, Delay: -1}).Limit(nil); err == nil ||
		strings.Count(err.Error(), "budget:") != 2 {
		t.Errorf("not every fault at once: %v", err)
	}
}
