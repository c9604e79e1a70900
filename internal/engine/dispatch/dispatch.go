package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

const (
	mostTogether = 50               // runs in one transaction
	sendFor      = time.Second      // then a transaction sends no more, and commits
	dispatchMost = 90 * time.Second // bounds a transaction whose Sender hangs
	promoteRuns  = 1000
)

// dispatcher sends the messages of queued runs.
type dispatcher struct {
	*core
	sender Sender
	pace   pace
}

// pace says how long a run waits if its message could not be sent: first, doubling, most.
type pace struct{ first, most time.Duration }

// run sends the messages of queued runs until ctx ends.
func (d *dispatcher) run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := run.Jitter(d.options.Dispatch)
		again, err := d.pass(ctx)
		if err == nil {
			d.outage.Over()
		}
		switch {
		case err != nil && ctx.Err() == nil:
			d.calm.Warn("edda: runs were not dispatched", "error", err)
		case again:
			wait = 0
		case err == nil:
			wait = min(wait, d.untilNext(ctx, d.sql.Get("next_ready")))
		}
		run.Wait(ctx, wait, d.ready)
	}
	return nil
}

// pass promotes runs that are ready, picks a batch, and dispatches it. It reports whether the next pass may find more
// at once.
func (d *dispatcher) pass(ctx context.Context) (again bool, err error) {
	if err := d.promote(ctx); err != nil {
		return false, fmt.Errorf("queue the runs that have become ready: %w", err)
	}
	picked, err := d.pick(ctx)
	if err != nil || len(picked) == 0 {
		return false, err
	}
	sent, err := d.dispatchAll(ctx, picked)
	return sent > 0, err
}

func (d *dispatcher) promote(ctx context.Context) error {
	b := &pgx.Batch{}
	d.queueOpen(b, cycleLimits)
	b.Queue(d.sql.Get("promote"), promoteRuns)
	return d.ask(ctx, b)
}

// dispatchAll dispatches a batch in up to MaxConcurrentDispatch transactions at a time. It returns how many messages
// were sent.
func (d *dispatcher) dispatchAll(ctx context.Context, picked []candidate) (sent int, err error) {
	basket, total := newBasket(picked, d.options.MaxConcurrentDispatch), atomic.Int64{}
	group := run.NewGroup(ctx)
	for range min(d.options.MaxConcurrentDispatch, len(picked)) {
		group.Go(func(ctx context.Context) error {
			for ctx.Err() == nil {
				some := basket.take()
				if len(some) == 0 {
					return nil
				}
				n, err := d.dispatchSome(ctx, some, basket)
				total.Add(int64(n))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return int(total.Load()), err
}

// dispatchSome dispatches some runs in one transaction. If a run cannot be sent, each is dispatched alone, and that
// run is refused. A run that waits in vain for a lock does not stop the others either; the next pass tries it again.
func (d *dispatcher) dispatchSome(ctx context.Context, some []candidate, b *basket) (sent int, err error) {
	t := &dispatch{dispatcher: d, wanted: some}
	err = t.deliver(ctx)
	switch {
	case err == nil:
		if len(t.late) > 0 {
			b.putBack(t.late)
		}
		return len(t.sent), nil
	case t.refused == nil && pgerr.ClassOf(err) != pgerr.Busy:
		return 0, err
	case len(some) == 1 && t.refused == nil:
		d.log.Warn("edda: a run was not dispatched, because a row that it needs is locked", "run", some[0].id,
			"error", err)
		return 0, nil
	case len(some) == 1:
		return 0, d.refuse(ctx, *t.refused, err)
	}
	for _, c := range some {
		n, err := d.dispatchSome(ctx, []candidate{c}, b)
		if sent += n; err != nil || ctx.Err() != nil {
			return sent, err
		}
	}
	return sent, nil
}
