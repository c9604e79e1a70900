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
	// mostAsking is the number of callers of a process that are in the line of one limit in the database. The callers
	// behind them wait in this process.
	mostAsking = 16

	askAgain   = time.Second     // time between the requests of a caller without a notification, ± a quarter
	askSoon    = askAgain / 20   // once after it was woken and refused: a second request may have been open then
	patience   = 3 * askAgain    // how long its place counts without a request
	askTimeout = 5 * time.Second // for the answer of the database
	leaveTime  = time.Second     // to give up a place that is lost after its patience anyway
)

// caller is a call that waits for a slot.
type caller struct {
	limit, holder string
	mayBeFree     run.Nudge // there may be a slot for it, or it may enter the line
	stands        bool      // whether it is in the line of the database
}

// queue lists the callers of this process that wait for one limit, in their order of arrival. They enter the line of
// the database one at a time, so that their order is the same there: it is enough to wake the first.
type queue []*caller

// enters returns the caller that may enter the line now, or nil.
func (q queue) enters() *caller {
	if at := slices.IndexFunc(q, func(c *caller) bool { return !c.stands }); at >= 0 && at < mostAsking {
		return q[at]
	}
	return nil
}

// queues has the queue of each limit that callers wait for. Safe for concurrent use.
type queues struct {
	mu sync.Mutex // guards of
	of map[string]*queue
}

// join appends a caller, and names it in the same order.
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

// leave wakes the next caller, because there may be a second free slot, and the caller that may enter the line in its
// place.
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

// mayAsk reports whether the caller is in the line, or may enter it.
func (q *queues) mayAsk(c *caller) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return c.stands || q.of[c.limit].enters() == c
}

// stand records that the caller is in the line now, and wakes the next caller that may enter it.
func (q *queues) stand(c *caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.stands = true
	if next := q.of[c.limit].enters(); next != nil {
		next.mayBeFree.Send()
	}
}

// wake lets the first caller request a slot. The others follow when it has got one: they came later, and get no slot
// before it.
func (q *queues) wake(limit string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting := q.of[limit]; waiting != nil {
		(*waiting)[0].mayBeFree.Send()
	}
}

// hear is called with the payload of each notification, and with "" when notifications may have been missed.
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

// wait requests a slot until it gets one, or ctx ends.
func (l *Limiter) wait(ctx context.Context, c *caller) (*Slot, error) {
	pause := askAgain
	for {
		if l.queues.mayAsk(c) {
			s, err := l.ask(ctx, c, patience)
			if err != nil {
				l.withdraw(ctx, c) // it may be in the line although there was no answer
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

// ask makes one request. It returns nil if there is no slot for the caller. The end of ctx does not break off a request
// on its way: no caller would release its slot.
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
		return nil, fmt.Errorf("%w any more: its row was deleted after its declaration", slots.ErrNoLimit)
	case len(g.Slots) == 0:
		return nil, nil //nolint:nilnil // there is no slot for it yet
	}
	return l.hold(ctx, g.Slots[0], began), nil
}

// withdraw gives up the caller's place in the line, so that it delays no other caller.
func (l *Limiter) withdraw(ctx context.Context, c *caller) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := l.store.Withdraw(ctx, l.pool, c.limit, c.holder); err != nil {
		l.options.Logger.Debug("edda: the ticket for a slot was not withdrawn", "limit", c.limit, "error", err)
	}
}
