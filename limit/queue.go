package limit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	slots "github.com/edda-go/edda/internal/store/limit"
)

const (
	// mostAsking is how many callers of a process stand in the line of one limit in the database. Those behind them
	// wait here.
	mostAsking = 16

	askAgain   = time.Second     // how often a caller asks that hears nothing, ± a quarter
	askSoon    = askAgain / 20   // once after it was woken and refused: another request may have been open then
	patience   = 3 * askAgain    // for so long its place counts if it does not ask
	askTimeout = 5 * time.Second // for the answer of the database
	leaveTime  = time.Second     // to give a place up that is lost after its patience anyway
)

// caller is a call that waits for a slot.
type caller struct {
	limit, holder string
	mayBeFree     run.Nudge // there may be a slot for it, or it may stand in the line
	stands        bool      // in the line of the database
}

// queue is the callers of this process that wait for one limit, in the order in which they came. They enter the line of
// the database one after another, so that their order is the same there: it is enough to wake the first.
type queue []*caller

// enters is the caller that may enter the line now, or nil.
func (q queue) enters() *caller {
	if at := slices.IndexFunc(q, func(c *caller) bool { return !c.stands }); at >= 0 && at < mostAsking {
		return q[at]
	}
	return nil
}

// queues are those of all limits for which callers wait. Safe for concurrent use.
type queues struct {
	mu sync.Mutex // guards of
	of map[string]*queue
}

// join puts a caller behind the others, and names it in the same order.
func (q *queues) join(limit string, name func() string) *caller {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &caller{limit: limit, holder: name(), mayBeFree: run.NewNudge()}
	waiting := q.of[limit]
	if waiting == nil {
		waiting = &queue{}
		q.of[limit] = waiting
	}
	*waiting = append(*waiting, c)
	return c
}

// leave lets the next one ask, because there may be another slot, and another one enter the line.
func (q *queues) leave(c *caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.of[c.limit]
	*waiting = slices.DeleteFunc(*waiting, func(other *caller) bool { return other == c })
	if len(*waiting) == 0 {
		delete(q.of, c.limit)
		return
	}
	(*waiting)[0].mayBeFree.Send()
	if next := waiting.enters(); next != nil {
		next.mayBeFree.Send()
	}
}

// mayAsk reports whether the caller stands in the line, or may enter it.
func (q *queues) mayAsk(c *caller) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return c.stands || q.of[c.limit].enters() == c
}

// stand notes that the caller stands in the line now, and lets another one enter.
func (q *queues) stand(c *caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.stands = true
	if next := q.of[c.limit].enters(); next != nil {
		next.mayBeFree.Send()
	}
}

// wake lets the first caller ask. The others follow when it has got a slot: they came later, and get none before it.
func (q *queues) wake(limit string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting := q.of[limit]; waiting != nil {
		(*waiting)[0].mayBeFree.Send()
	}
}

// hear is called with the payload of each notification, and with "" when some may have been missed.
func (q *queues) hear(payload string) {
	if payload != "" {
		if limit, ours := strings.CutPrefix(payload, slots.CallPrefix); ours {
			q.wake(limit)
		}
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.of {
		(*waiting)[0].mayBeFree.Send()
	}
}

// wait asks until there is a slot, or ctx ends.
func (l *Limiter) wait(ctx context.Context, c *caller) (*Slot, error) {
	pause := askAgain
	for {
		if l.queues.mayAsk(c) {
			s, err := l.ask(ctx, c, patience)
			if err != nil {
				l.withdraw(ctx, c) // it may stand in the line although there was no answer
			}
			if s != nil || err != nil {
				return s, err
			}
			if !c.stands {
				defer l.hearing.Start(ctx)()
				l.queues.stand(c)
			}
		}
		switch run.Wait(ctx, run.Jitter(pause), c.mayBeFree) {
		case run.Nudged:
			pause = askSoon
		case run.TimedOut:
			pause = askAgain
		case run.Ended:
			if c.stands {
				l.withdraw(ctx, c)
			}
			return nil, context.Cause(ctx)
		}
	}
}

// ask asks once. It returns nil if there is no slot for the caller. A request that is on its way is not broken off when
// ctx ends: its slot would be held by nobody.
func (l *Limiter) ask(ctx context.Context, c *caller, patience time.Duration) (*Slot, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	began := time.Now()
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	g, err := l.store.Grant(attempt, pg.Conn{Conn: conn.Conn()}, slots.Request{
		Name: c.limit, Holder: c.holder, Want: 1, Lease: l.options.Lease, Patience: patience,
	})
	switch {
	case err != nil:
		return nil, err
	case !g.Limited:
		l.forget(c.limit)
		return nil, fmt.Errorf("%w any more: it was declared, and its row is gone", slots.ErrNoLimit)
	case len(g.Slots) == 0:
		return nil, nil //nolint:nilnil // there is no slot for it yet
	}
	return l.hold(ctx, g.Slots[0], began), nil
}

// withdraw gives up the caller's place in the line, so that it holds nobody up.
func (l *Limiter) withdraw(ctx context.Context, c *caller) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := l.store.Withdraw(ctx, l.pool, c.limit, c.holder); err != nil {
		l.options.Logger.Debug("edda: the ticket for a slot was not withdrawn", "limit", c.limit, "error", err)
	}
}
