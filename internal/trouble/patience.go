package trouble

import (
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/pgerr"
	"github.com/edda-go/edda/internal/run"
)

// Patience is how long a loop waits after a transaction was lost: longer after each failure in a row. It belongs to one
// goroutine.
type Patience struct{ backoff *backoff.ExponentialBackOff }

// NewPatience returns a Patience with no failure behind it.
func NewPatience() Patience {
	return Patience{backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))}
}

// After is how long to wait after err: hardly at all when trying again is the remedy.
func (p Patience) After(err error) time.Duration {
	switch pgerr.ClassOf(err) {
	case pgerr.GuardFailed, pgerr.Race, pgerr.Busy:
		return run.Jitter(2 * time.Millisecond)
	}
	return p.backoff.NextBackOff()
}

// Reset is called after a success.
func (p Patience) Reset() { p.backoff.Reset() }
