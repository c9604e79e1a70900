package recoverability

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/edda-go/edda/saga"
)

// Default makes at most 24 attempts: 4 rounds of 6 attempts each, an attempt and 5 immediate retries; the delays
// between the rounds are 10, 20 and 30 s, ± 10 %. saga.Permanent makes a dead letter at once. saga.RetryAfter waits
// for its own time, as one attempt.
func Default(f Failure) Decision { return DefaultRetries().decide(f) }

// DefaultRetries returns the numbers of Default.
func DefaultRetries() Retries { return Retries{Immediate: 5, Delayed: 3, Step: 10 * time.Second} }

// Retries are the numbers of a policy. Zero fields have no defaults, except Max: Retries{} makes one attempt and no
// retry. Retries treats saga.Permanent and saga.RetryAfter as Default does.
type Retries struct {
	Immediate int           // immediate retries after the first attempt of each round
	Delayed   int           // rounds after the first, each after a delay
	Step      time.Duration // the first delay
	Growth    Growth        // of the delays
	Max       time.Duration // of a delay, before jitter; 0 is ten years
	Jitter    Jitter        // of the delays
}

// Growth is the shape of a series of delays.
type Growth uint8

const (
	Linear      Growth = iota // Step, 2 Step, 3 Step, …
	Exponential               // Step, 2 Step, 4 Step, …
)

// Jitter is the largest deviation of a delay, so that messages that failed together do not come back together. It is
// computed from the message's id and the attempt, so computing a decision again gives the same result.
type Jitter uint8

const (
	Tenth Jitter = iota // ± 10 %
	Full                // from zero to the delay: the widest spread, and half the delay on average
)

// mostAttempts keeps every count well within the 32 bits of the column attempt.
const mostAttempts = 1_000_000

// Policy returns the policy with these numbers. The error lists every number that is out of range.
func (r Retries) Policy() (Policy, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.decide, nil
}

func (r Retries) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("retries: "+format, args...)) }
	if r.Immediate < 0 || r.Immediate >= mostAttempts {
		fault("Immediate %d: want 0 to %d", r.Immediate, mostAttempts-1)
	}
	if r.Delayed < 0 || r.Delayed >= mostAttempts {
		fault("Delayed %d: want 0 to %d", r.Delayed, mostAttempts-1)
	}
	if len(faults) == 0 && r.Attempts() > mostAttempts {
		fault("%d attempts in all, want at most %d", r.Attempts(), mostAttempts)
	}
	switch {
	case r.Step < 0 || r.Step > longest:
		fault("Step %v: want 0 to %v", r.Step, longest)
	case r.Delayed > 0 && r.Step == 0:
		fault("Delayed %d needs a Step", r.Delayed)
	}
	if r.Max < 0 || r.Max > longest {
		fault("Max %v: want 0 to %v", r.Max, longest)
	} else if r.Max > 0 && r.Max < r.Step {
		fault("Max %v is shorter than Step %v", r.Max, r.Step)
	}
	if r.Growth > Exponential {
		fault("Growth %d: want Linear or Exponential", r.Growth)
	}
	if r.Jitter > Full {
		fault("Jitter %d: want Tenth or Full", r.Jitter)
	}
	return errors.Join(faults...)
}

// Attempts returns the number of attempts for a message that always fails.
func (r Retries) Attempts() int { return (r.Immediate + 1) * (r.Delayed + 1) }

// decide computes the position in the series from the attempt: every (Immediate + 1)th failure ends a round.
func (r Retries) decide(f Failure) Decision {
	var permanent *saga.PermanentError
	var after *saga.RetryAfterError
	attempt, round := max(f.Info.Attempt, 1), r.Immediate+1
	switch {
	case errors.As(f.Err, &permanent), attempt >= r.Attempts():
		return DeadLetter()
	case errors.As(f.Err, &after):
		return RetryIn(after.After)
	case attempt%round != 0:
		return RetryNow()
	}
	delay := r.delay(attempt / round)
	if r.Jitter == Full {
		return RetryIn(upTo(delay, f.Info.ID, attempt))
	}
	return RetryIn(jitter(delay, f.Info.ID, attempt))
}

// delay returns the nth delay, n from 1, before jitter. It saturates instead of overflowing.
func (r Retries) delay(n int) time.Duration {
	most := longest
	if r.Max > 0 {
		most = r.Max
	}
	d := float64(r.Step) * float64(n)
	if r.Growth == Exponential {
		d = math.Ldexp(float64(r.Step), n-1)
	}
	if d >= float64(most) {
		return most
	}
	return time.Duration(d)
}

// upTo returns a delay between 1 ns and d: a delay of zero would be an immediate retry.
func upTo(d time.Duration, id saga.ID, attempt int) time.Duration {
	return time.Duration(spread(id, attempt)%uint64(max(d, 1))) + 1
}

// jitter moves d by up to 10 % either way.
func jitter(d time.Duration, id saga.ID, attempt int) time.Duration {
	tenth := int64(d / 10)
	if tenth == 0 {
		return d
	}
	return d + time.Duration(int64(spread(id, attempt)%uint64(2*tenth+1))-tenth)
}

// spread hashes with FNV-1a and a final mix, because the ids of one batch differ in a few bits only.
func spread(id saga.ID, attempt int) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range id {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ uint64(attempt)) * 1099511628211
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}
