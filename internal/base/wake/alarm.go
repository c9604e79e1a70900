package wake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// Alarm wakes the loops that wait for the messages of one queue: when Wake is called, at a time set by WakeAt, and
// once a poll interval. Safe for concurrent use.
type Alarm struct {
	poll  time.Duration
	wake  run.Nudge // a wake-up that meets no idle waiter is kept for the next one
	reset run.Nudge // next has changed
	idle  atomic.Int32

	mu   sync.Mutex // guards next
	next time.Time  // when Tick wakes a waiter by itself; zero until Tick has set the time of the next poll
}

// NewAlarm returns an Alarm whose first waiter is woken at once.
func NewAlarm(poll time.Duration) *Alarm {
	a := &Alarm{poll: poll, wake: run.NewNudge(), reset: run.NewNudge()}
	a.wake.Send()
	return a
}

// Wake wakes one waiter. It never blocks. It reports whether a waiter was idle.
func (a *Alarm) Wake() (idle bool) {
	idle = a.Idle()
	a.wake.Send()
	return idle
}

// Idle reports whether a loop waits.
func (a *Alarm) Idle() bool { return a.idle.Load() > 0 }

// WakeAt wakes a waiter at t, or at the next poll if that comes first.
func (a *Alarm) WakeAt(t time.Time) {
	a.mu.Lock()
	sooner := a.next.IsZero() || t.Before(a.next)
	if sooner {
		a.next = t
	}
	a.mu.Unlock()
	if sooner {
		a.reset.Send()
	}
}

// Await waits until the caller is woken. It returns false when ctx has ended.
func (a *Alarm) Await(ctx context.Context) bool {
	a.idle.Add(1)
	defer a.idle.Add(-1)
	select {
	case <-a.wake:
		if ctx.Err() != nil {
			a.wake.Send() // it was meant for a loop that continues
			return false
		}
		return true
	case <-ctx.Done():
		return false
	}
}

// Tick polls until ctx ends: it calls wake at the time set by WakeAt, at the latest after a poll interval. wake is
// Wake, or a function of the caller in its place.
func (a *Alarm) Tick(ctx context.Context, wake func() (idle bool)) error {
	for {
		switch run.Wait(ctx, a.untilNext(), a.reset) {
		case run.Ended:
			return nil
		case run.Nudged:
			continue
		}
		a.mu.Lock()
		a.next = time.Time{}
		a.mu.Unlock()
		wake()
	}
}

// untilNext returns how long to wait. It sets the time of the next poll unless an earlier time is set.
func (a *Alarm) untilNext() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if limit := now.Add(run.Jitter(a.poll)); a.next.IsZero() || a.next.After(limit) {
		a.next = limit
	}
	return a.next.Sub(now)
}
