package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/run"
)

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

// call nudges a loop of this process, and then the same loop of others. A call that is lost costs them a poll.
func (s *Scheduler) call(ctx context.Context, loop run.Nudge, payload string) {
	loop.Send()
	if s.options.PollOnly || !s.ringing.allow(payload) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := s.pool.Exec(ctx, s.sql.Get("notify"), s.schema.Channel(), payload); err != nil {
		s.log.Debug("edda: notify", "error", err)
	}
}
