package recoverability

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/saga"
)

// mostBackOff is the largest number of attempts of a Backoff policy: its nth decision takes n steps.
const mostBackOff = 10_000

// Backoff makes a policy from a policy of github.com/cenkalti/backoff/v4. create returns a new one; it is called for
// each failure, and must be safe for concurrent use. After its nth failed attempt a message waits for the nth interval:
//
//	policy := recoverability.Backoff(func() backoff.BackOff {
//		return backoff.WithMaxRetries(backoff.NewExponentialBackOff(), 8)
//	})
//
// backoff.Stop makes a dead letter, and so do saga.Permanent, backoff.Permanent and the 10,000th attempt. An interval
// of zero retries at once. saga.RetryAfter waits for its own time instead of the interval.
//
// MaxElapsedTime of a backoff.ExponentialBackOff (15 minutes by default) limits the age of a message: the time since
// its first failure, by the database's clock. Inside a wrapper such as backoff.WithMaxRetries it has no effect: limit
// the age with Within there. The library draws jitter at random, so a decision cannot be recomputed.
//
// If create returns nil, the verdict is a dead letter with an error.
func Backoff(create func() backoff.BackOff) Policy {
	return func(f Failure) Decision {
		var permanent *saga.PermanentError
		var theirs *backoff.PermanentError
		var after *saga.RetryAfterError
		attempt := max(f.Info.Attempt, 1)
		if attempt >= mostBackOff || errors.As(f.Err, &permanent) || errors.As(f.Err, &theirs) {
			return DeadLetter()
		}
		b := create()
		if b == nil {
			return nil
		}
		switch wait := interval(b, attempt, f); {
		case wait == backoff.Stop:
			return DeadLetter()
		case errors.As(f.Err, &after):
			return RetryIn(after.After)
		default:
			return RetryIn(wait)
		}
	}
}

// moment is a backoff.Clock that always returns the same time.
type moment time.Time

func (m moment) Now() time.Time { return time.Time(m) }

// interval returns the nth interval of a new policy.
func interval(b backoff.BackOff, n int, f Failure) time.Duration {
	e, aged := b.(*backoff.ExponentialBackOff)
	aged = aged && !f.First.IsZero()
	if aged {
		e.Clock = moment(f.First)
	}
	b.Reset()
	for range n - 1 {
		if b.NextBackOff() == backoff.Stop {
			return backoff.Stop
		}
	}
	if aged {
		e.Clock = moment(f.Now)
	}
	return b.NextBackOff()
}
