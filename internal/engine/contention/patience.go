package contention

import (
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
)

// Patience computes how long a loop waits after a transaction was lost: longer after each failure in a row. It
// belongs to one goroutine.
type Patience struct{ pauses run.Pauses }

// NewPatience returns a Patience without failures so far.
func NewPatience() Patience {
	return Patience{run.Pauses{First: 20 * time.Millisecond, Most: 5 * time.Second}}
}

// After is run.Pauses.After, with a very short pause if a new try is likely to succeed at once.
func (p *Patience) After(err error) time.Duration {
	if err == nil {
		return p.pauses.After(nil)
	}
	switch pgerr.ClassOf(err) {
	case pgerr.GuardFailed, pgerr.Race, pgerr.Busy:
		return run.Jitter(2 * time.Millisecond)
	}
	return p.pauses.After(err)
}
