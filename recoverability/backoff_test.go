package recoverability_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

func doubling(options ...backoff.ExponentialBackOffOpts) func() backoff.BackOff {
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(append([]backoff.ExponentialBackOffOpts{
			backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0),
			backoff.WithMaxInterval(10 * time.Second)}, options...)...)
	}
}

func TestBackoffWaitsForTheNthInterval(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		create   func() backoff.BackOff
		attempts int
		delays   []time.Duration
	}{
		"exponential": {doubling(), 1 << 30, []time.Duration{s, 2 * s, 4 * s, 8 * s, 10 * s, 10 * s}},
		"three retries": {func() backoff.BackOff { return backoff.WithMaxRetries(doubling()(), 3) }, 4,
			[]time.Duration{s, 2 * s, 4 * s}},
		"constant": {func() backoff.BackOff { return backoff.NewConstantBackOff(7 * s) }, 1 << 30,
			[]time.Duration{7 * s, 7 * s}},
		"at once": {func() backoff.BackOff { return &backoff.ZeroBackOff{} }, 1 << 30, []time.Duration{0, 0}},
		"stop":    {func() backoff.BackOff { return &backoff.StopBackOff{} }, 1, nil},
	}
	for name, test := range tests {
		p := recoverability.Backoff(test.create)
		for n, want := range test.delays {
			v := recoverability.Resolve(p, failure(n+1, errBoom))
			if v.Delay != want || v.Err != nil || v.Action != recoverability.ActionRetryIn && want > 0 ||
				v.Action != recoverability.ActionRetryNow && want == 0 {
				t.Errorf("%s, attempt %d: %+v, want %v", name, n+1, v, want)
			}
		}
		most := min(test.attempts, 10_000)
		if v := recoverability.Resolve(p, failure(most, errBoom)); v.Action != recoverability.ActionDeadLetter {
			t.Errorf("%s, attempt %d: %+v, want a dead letter", name, most, v)
		}
		if v := recoverability.Resolve(p, failure(most-1, errBoom)); most > 1 &&
			v.Action == recoverability.ActionDeadLetter {
			t.Errorf("%s, attempt %d: %+v, want a retry", name, most-1, v)
		}
	}
}

// The age of a message accumulates over its failures, although each decision makes a new backoff policy.
func TestBackoffEndsAtMaxElapsedTime(t *testing.T) {
	p := recoverability.Backoff(doubling(backoff.WithMaxElapsedTime(time.Minute)))
	for age, want := range map[time.Duration]recoverability.Action{
		0:                recoverability.ActionRetryIn,
		49 * time.Second: recoverability.ActionRetryIn,
		51 * time.Second: recoverability.ActionDeadLetter, // the fifth interval of 10 s would end after a minute
	} {
		f := failure(5, errBoom)
		f.First, f.Now = noon, noon.Add(age)
		if v := recoverability.Resolve(p, f); v.Action != want {
			t.Errorf("after %v: %+v, want %v", age, v, want)
		}
	}
	if v := recoverability.Resolve(p, failure(5, errBoom)); v.Action != recoverability.ActionRetryIn {
		t.Errorf("without a first failure: %+v", v)
	}
}

func TestBackoffKnowsErrorsThatSayWhatToDo(t *testing.T) {
	p := recoverability.Backoff(doubling())
	for _, err := range []error{saga.Permanent(errBoom), backoff.Permanent(errBoom),
		fmt.Errorf("charge: %w", backoff.Permanent(errBoom))} {
		if v := recoverability.Resolve(p, failure(1, err)); v.Action != recoverability.ActionDeadLetter ||
			v.Err != nil {
			t.Errorf("%v: %+v, want a dead letter", err, v)
		}
	}
	after := saga.RetryAfter(time.Hour, errBoom)
	if v := recoverability.Resolve(p, failure(1, after)); v.Delay != time.Hour {
		t.Errorf("retry after an hour: %+v", v)
	}
	stop := recoverability.Backoff(func() backoff.BackOff { return &backoff.StopBackOff{} })
	if v := recoverability.Resolve(stop, failure(1, after)); v.Action != recoverability.ActionDeadLetter {
		t.Errorf("retry after an hour, but the policy stops: %+v", v)
	}
	none := recoverability.Backoff(func() backoff.BackOff { return nil })
	if v := recoverability.Resolve(none, failure(1, errBoom)); v.Action != recoverability.ActionDeadLetter ||
		v.Err == nil {
		t.Errorf("no policy: %+v, want a dead letter with an error", v)
	}
}

// Retries computes its nth delay directly; the library computes it step by step. Both are equal.
func TestExponentialRetriesAreThoseOfTheLibrary(t *testing.T) {
	r := recoverability.Retries{Delayed: 12, Step: time.Second, Growth: recoverability.Exponential,
		Max: 5 * time.Minute}
	p, err := r.Policy()
	if err != nil {
		t.Fatal(err)
	}
	library := backoff.NewExponentialBackOff(backoff.WithInitialInterval(r.Step), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(r.Max), backoff.WithMaxElapsedTime(0))
	_, delays := story(t, p, errBoom, 100)
	want := make([]time.Duration, len(delays))
	for n := range want {
		want[n] = library.NextBackOff()
	}
	near := func(got, want time.Duration) bool { return (got - want).Abs() <= want/10 }
	if len(delays) != r.Delayed || !slices.EqualFunc(delays, want, near) {
		t.Errorf("the delays are %v, want %v, each up to a tenth more or less", delays, want)
	}
}
