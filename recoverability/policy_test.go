package recoverability_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

var errBoom = errors.New("boom")

func failure(attempt int, err error) recoverability.Failure {
	return recoverability.Failure{Info: saga.Info{ID: saga.ID{15: 7}, Attempt: attempt}, Err: err}
}

// story runs a message that always fails through p, and records the decisions.
func story(t *testing.T, p recoverability.Policy, err error, most int) (attempts int, delays []time.Duration) {
	t.Helper()
	for n := 1; n <= most; n++ {
		v := recoverability.Resolve(p, failure(n, err))
		switch v.Action {
		case recoverability.ActionDeadLetter:
			return n, delays
		case recoverability.ActionRetryIn:
			delays = append(delays, v.Delay)
		case recoverability.ActionRetryNow:
		default:
			t.Fatalf("attempt %d: %+v", n, v)
		}
	}
	t.Fatalf("no end after %d attempts", most)
	return 0, nil
}

func TestDefaultMakes24Attempts(t *testing.T) {
	attempts, delays := story(t, recoverability.Default, errBoom, 100)
	if attempts != 24 || len(delays) != 3 {
		t.Fatalf("%d attempts, delays %v", attempts, delays)
	}
	for i, d := range delays {
		want := time.Duration(i+1) * 10 * time.Second
		if d < want*9/10 || d > want*11/10 {
			t.Errorf("delay %d is %v, want %v ± 10 %%", i+1, d, want)
		}
	}
}

func TestDefaultDecisions(t *testing.T) {
	tests := []struct {
		attempt int
		err     error
		want    recoverability.Verdict
	}{
		{1, errBoom, recoverability.Verdict{Action: recoverability.ActionRetryNow}},
		{0, errBoom, recoverability.Verdict{Action: recoverability.ActionRetryNow}},
		{-3, errBoom, recoverability.Verdict{Action: recoverability.ActionRetryNow}},
		{24, errBoom, recoverability.Verdict{Action: recoverability.ActionDeadLetter}},
		{math.MaxInt, errBoom, recoverability.Verdict{Action: recoverability.ActionDeadLetter}},
		{1, saga.Permanent(errBoom), recoverability.Verdict{Action: recoverability.ActionDeadLetter}},
		{1, fmt.Errorf("x: %w", saga.Permanent(errBoom)),
			recoverability.Verdict{Action: recoverability.ActionDeadLetter}},
		{1, saga.Permanent(saga.RetryAfter(time.Hour, errBoom)),
			recoverability.Verdict{Action: recoverability.ActionDeadLetter}},
		{23, saga.RetryAfter(time.Minute, errBoom),
			recoverability.Verdict{Action: recoverability.ActionRetryIn, Delay: time.Minute}},
		{24, saga.RetryAfter(time.Minute, errBoom), recoverability.Verdict{Action: recoverability.ActionDeadLetter}},
		{2, saga.RetryAfter(-1, errBoom), recoverability.Verdict{Action: recoverability.ActionRetryNow}},
		{2, saga.RetryAfter(math.MaxInt64, errBoom),
			recoverability.Verdict{Action: recoverability.ActionRetryIn, Delay: 10 * 365 * 24 * time.Hour}},
	}
	for _, test := range tests {
		if got := recoverability.Resolve(nil, failure(test.attempt, test.err)); got != test.want {
			t.Errorf("attempt %d, %v: got %+v, want %+v", test.attempt, test.err, got, test.want)
		}
	}
}

func TestResolveDeadLettersWhatABrokenPolicyGetsWrong(t *testing.T) {
	tests := map[string]struct {
		policy recoverability.Policy
		want   string
	}{
		"nil":  {func(recoverability.Failure) recoverability.Decision { return nil }, "no decision"},
		"zero": {func(recoverability.Failure) (d recoverability.Decision) { return d }, "no decision"},
		"embedded nil": {func(recoverability.Failure) recoverability.Decision {
			return struct{ recoverability.Decision }{}
		}, "no decision"},
		"panic": {func(recoverability.Failure) recoverability.Decision { panic("oops") }, "panic: oops"},
	}
	for name, test := range tests {
		v := recoverability.Resolve(test.policy, failure(1, errBoom))
		if v.Action != recoverability.ActionDeadLetter || v.Err == nil || !strings.Contains(v.Err.Error(), test.want) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestDiscardHasAReason(t *testing.T) {
	p := func(recoverability.Failure) recoverability.Decision { return recoverability.DiscardBecause("") }
	if v := recoverability.Resolve(p, failure(1, errBoom)); v.Action != recoverability.ActionDiscard || v.Reason == "" {
		t.Errorf("%+v", v)
	}
}

func TestRetriesRefusesNumbersThatMakeNoSense(t *testing.T) {
	tests := map[string]recoverability.Retries{
		"Immediate -1":         {Immediate: -1},
		"Immediate 2147483648": {Immediate: 1 << 31},
		"Delayed -1":           {Delayed: -1, Step: time.Second},
		"needs a Step":         {Delayed: 1},
		"Step -1s":             {Delayed: 1, Step: -time.Second},
		"attempts in all":      {Immediate: 99_999, Delayed: 99_999, Step: time.Second},
		"shorter than Step":    {Delayed: 1, Step: time.Minute, Max: time.Second},
		"Max -1s":              {Max: -time.Second},
		"Growth 9":             {Growth: 9},
		"Step 2562047h":        {Delayed: 1, Step: math.MaxInt64},
	}
	for want, r := range tests {
		p, err := r.Policy()
		if err == nil || !strings.Contains(err.Error(), want) || p != nil {
			t.Errorf("%+v: error %v, want %q in it", r, err, want)
		}
	}
	if _, err := (recoverability.Retries{Immediate: -1, Delayed: -1}).Policy(); strings.Count(err.Error(),
		"retries:") != 2 {
		t.Errorf("not every fault at once: %v", err)
	}
}

func TestRetriesSeries(t *testing.T) {
	tests := map[string]struct {
		retries  recoverability.Retries
		attempts int
		delays   []time.Duration
	}{
		"none":      {recoverability.Retries{}, 1, nil},
		"immediate": {recoverability.Retries{Immediate: 3}, 4, nil},
		"linear": {recoverability.Retries{Delayed: 3, Step: time.Minute, Max: 2 * time.Minute}, 4,
			[]time.Duration{1, 2, 2}},
		"exponential": {recoverability.Retries{Immediate: 1, Delayed: 4, Step: time.Minute,
			Growth: recoverability.Exponential}, 10, []time.Duration{1, 2, 4, 8}},
	}
	for name, test := range tests {
		p, err := test.retries.Policy()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		attempts, delays := story(t, p, errBoom, 100)
		if attempts != test.attempts || len(delays) != len(test.delays) {
			t.Errorf("%s: %d attempts, delays %v", name, attempts, delays)
			continue
		}
		for i, d := range delays {
			if want := test.delays[i] * time.Minute; d < want*9/10 || d > want*11/10 {
				t.Errorf("%s: delay %d is %v, want about %v", name, i+1, d, want)
			}
		}
	}
}

func TestExponentialSaturates(t *testing.T) {
	p, err := recoverability.Retries{Delayed: 5000, Step: time.Second, Growth: recoverability.Exponential,
		Max: time.Hour}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{13, 64, 1100, 5000} {
		if v := recoverability.Resolve(p, failure(n, errBoom)); v.Delay < 54*time.Minute || v.Delay > 66*time.Minute {
			t.Errorf("attempt %d: %+v", n, v)
		}
	}
}

func TestJitterSpreadsNeighboursAndIsRepeatable(t *testing.T) {
	seen := map[time.Duration]bool{}
	var low, high int
	for n := range 1000 {
		f := failure(6, errBoom)
		f.Info.ID = saga.ID{14: byte(n >> 8), 15: byte(n)}
		a, b := recoverability.Resolve(nil, f), recoverability.Resolve(nil, f)
		if a != b {
			t.Fatalf("two answers for one failure: %v and %v", a, b)
		}
		seen[a.Delay] = true
		if a.Delay < 10*time.Second {
			low++
		} else {
			high++
		}
	}
	if len(seen) < 990 || low < 400 || high < 400 {
		t.Errorf("%d different delays, %d below and %d above the middle", len(seen), low, high)
	}
}
