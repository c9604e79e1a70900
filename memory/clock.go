package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// forEver is for waits that only a change ends.
const forEver time.Duration = math.MaxInt64

var errReal = errors.New("this bus runs in real time: set Options.Start")

// Advance moves the clock of the bus by d. At each time when a timeout, delay, retry or manifest is due it stops until
// all consequences are handled. Advance(ctx, 0) waits for messages that are due now. It returns an error if the time of
// the bus is real, if d is negative, or if ctx ends before.
//
// Advance does not wait for endpoints that do not run or are paused; their messages stay.
func (b *Bus) Advance(ctx context.Context, d time.Duration) error {
	if b.real {
		return fmt.Errorf("advance: %w", errReal)
	}
	if d < 0 {
		return fmt.Errorf("advance by %v: want 0 or more", d)
	}
	end := b.Now().Add(d.Truncate(time.Microsecond))
	for {
		if err := b.Idle(ctx); err != nil {
			return err
		}
		if b.moveTo(end) {
			return nil
		}
	}
}

// moveTo moves the clock to the next time when something is due, at most to end, unless the bus is no longer idle. It
// reports whether the clock has reached end.
func (b *Bus) moveTo(end time.Time) (done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.idle() {
		return false
	}
	next := b.upcoming()
	if done = next.IsZero() || next.After(end); done {
		next = end
	}
	b.clock = next.UTC()
	b.change()
	return done
}

// upcoming returns the first time after now when a message or a manifest is due, zero if nothing is.
func (w *world) upcoming() (first time.Time) {
	now := w.now()
	sooner := func(at time.Time) {
		if at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, q := range w.queues {
		sooner(q.due())
	}
	for _, s := range w.schedules {
		sooner(s.table.Upcoming())
	}
	return first
}

// Idle waits until no message is being handled, and no running endpoint has a message that is due. It does not wait for
// timeouts and retries that are due later. It returns the cause of ctx if ctx ends before.
func (b *Bus) Idle(ctx context.Context) error {
	for {
		b.mu.Lock()
		idle, changed, wait := b.idle(), b.changed, forEver
		if at := b.upcoming(); b.real && !at.IsZero() {
			wait = time.Until(at)
		}
		b.mu.Unlock()
		if idle {
			return nil
		}
		if run.Wait(ctx, wait, changed) == run.Ended {
			return fmt.Errorf("wait for an idle bus: %w", context.Cause(ctx))
		}
	}
}

func (w *world) idle() bool {
	if slices.ContainsFunc(w.schedules, func(s *Scheduler) bool { return s.touched }) {
		return false
	}
	now := w.now()
	for _, q := range w.queues {
		at := q.due()
		if q.inHand > 0 || q.running && !at.IsZero() && !at.After(now) {
			return false
		}
	}
	return true
}
