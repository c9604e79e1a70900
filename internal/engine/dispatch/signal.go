package dispatch

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
)

// The payloads of notifications between schedulers, on the channel of the schema.
const (
	evaluatePayload = "evaluate"
	dispatchPayload = "dispatch"
)

// call nudges a loop of this process, and then the same loop in other processes. If a notification is lost, they find
// the work at their next poll.
func (c *core) call(ctx context.Context, loop run.Nudge, payload string) {
	loop.Send()
	if c.options.PollOnly || !c.ringing.allow(payload) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := c.pool.Exec(ctx, c.sql.Get("notify"), c.schema.Channel(), payload); err != nil {
		c.log.Debug("edda: notify failed", "error", err)
	}
}

// quiet limits this process to one notification per notifyGap and payload, since Postgres commits transactions that
// notify one after another. Other processes find the remaining work by polling.
type quiet struct {
	mu   sync.Mutex // guards last
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

// listen nudges the loops when other processes notify. The loops find missed notifications by polling.
func (e *Engine) listen(ctx context.Context) error {
	return lease.Listener{
		Pool: e.core.pool.Pool, Channel: e.core.schema.Channel(), Heard: e.heard, Logger: e.core.calm,
	}.Run(ctx)
}

// heard receives the payload of each notification, and "" if some may have been missed.
func (e *Engine) heard(payload string) {
	if payload == "" {
		e.core.due.Send()
		e.core.ready.Send()
		e.keeper.Wake()
		e.core.options.Heard("")
		return
	}
	for one := range strings.SplitSeq(payload, ",") {
		e.hear(one)
	}
}

func (e *Engine) hear(payload string) {
	switch payload {
	case evaluatePayload:
		e.core.due.Send()
	case dispatchPayload:
		e.core.ready.Send()
	case lease.WakePrefix + LeaseName:
		e.keeper.Wake()
	default:
		e.core.options.Heard(payload)
	}
}
