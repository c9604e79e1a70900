package run

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses computes how long a loop waits after failures in a row: First, then half as long again each time, up to
// Most. Each pause is spread by half of it. It belongs to one goroutine.
type Pauses struct {
	First, Most time.Duration

	next time.Duration
}

// After is called with the result of every attempt, and returns how long to wait before the next one. A success needs
// no pause, and ends the row.
func (p *Pauses) After(err error) time.Duration {
	if err == nil {
		p.next = 0
		return 0
	}
	return p.grown()
}

// lasting is how long a run that has succeeded takes at least.
const lasting = time.Minute

// AfterRun is called when work has ended that began at begun and should run forever. It returns how long to wait
// before the next start, even if the work has ended without an error. A run of more than a minute ends the row.
func (p *Pauses) AfterRun(begun time.Time) time.Duration {
	if time.Since(begun) > lasting {
		p.After(nil)
	}
	return p.grown()
}

func (p *Pauses) grown() time.Duration {
	now := max(p.next, p.First)
	p.next = min(now+now/2, p.Most)
	return now/2 + rand.N(now+1)
}

// Reopen calls open and, if that succeeds, use, again and again until ctx ends: after the failure of either it calls
// broken and waits. The pauses grow while open fails.
func (p *Pauses) Reopen(ctx context.Context, open, use func(ctx context.Context) error, broken func(err error)) {
	for ctx.Err() == nil {
		err := open(ctx)
		pause := p.After(err)
		if err == nil {
			err, pause = use(ctx), Jitter(p.First)
		}
		if ctx.Err() == nil {
			broken(err)
			_ = Sleep(ctx, pause) // the loop notices the end of ctx
		}
	}
}
