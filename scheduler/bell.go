package scheduler

import (
	"context"
	"sync"
	"time"
)

// bell calls a loop. A ring that meets nobody is kept for the next one who waits; more than one is as good as one.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// wait returns when the bell rings, after d, or when ctx has ended; ok is false then.
func (b bell) wait(ctx context.Context, d time.Duration) (ok bool) {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-b:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// quiet keeps this process from calling others more often than each notifyGap: Postgres commits transactions that
// notify one after another. Others poll.
type quiet struct {
	mu   sync.Mutex
	last map[string]time.Time
}

const notifyGap = 50 * time.Millisecond

func (q *quiet) allow(payload string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.last[payload]) < notifyGap {
		return false
	}
	if q.last == nil {
		q.last = map[string]time.Time{}
	}
	q.last[payload] = time.Now()
	return true
}

// The payloads that schedulers call each other with, on the channel of the schema.
const (
	evaluatePayload = "evaluate"
	dispatchPayload = "dispatch"
)

// call rings a bell of this process, and that of others after it. A call that is lost costs them a poll.
func (s *Scheduler) call(ctx context.Context, b bell, payload string) {
	b.ring()
	if s.options.PollOnly || !s.ringing.allow(payload) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := s.pool.Exec(ctx, s.sql.Get("notify"), s.schema.Channel(), payload); err != nil {
		s.log.Debug("edda: notify", "error", err)
	}
}
