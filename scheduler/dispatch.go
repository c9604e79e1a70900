package scheduler

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

const (
	mostTogether = 50               // runs that one transaction dispatches
	sendFor      = time.Second      // after which it sends no more, and commits
	dispatchMost = 90 * time.Second // that a transaction takes, in which the Sender hangs
	promoteRuns  = 1000
)

// dispatch sends the messages of queued runs until ctx ends.
func (s *Scheduler) dispatch(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := run.Jitter(s.options.Dispatch)
		again, err := s.pass(ctx)
		if err == nil {
			s.outage.Over()
		}
		switch {
		case err != nil && ctx.Err() == nil:
			s.calm.Warn("edda: runs were not dispatched", "error", err)
		case again:
			wait = 0
		case err == nil:
			wait = min(wait, s.untilNext(ctx, s.sql.Get("next_ready")))
		}
		run.Wait(ctx, wait, s.ready)
	}
	return nil
}

// pass promotes what is ready, picks a batch, and dispatches it. It tells whether another pass may find more at once.
func (s *Scheduler) pass(ctx context.Context) (again bool, err error) {
	if err := s.promote(ctx); err != nil {
		return false, fmt.Errorf("queue the runs that have become ready: %w", err)
	}
	picked, err := s.pick(ctx)
	if err != nil || len(picked) == 0 {
		return false, err
	}
	sent, err := s.dispatchAll(ctx, picked)
	return sent > 0, err
}

func (s *Scheduler) promote(ctx context.Context) error {
	b := &pgx.Batch{}
	s.queueOpen(b, cycleLimits)
	b.Queue(s.sql.Get("promote"), promoteRuns)
	return s.pool.SendBatch(ctx, b).Close()
}

// dispatchAll dispatches a batch, by MaxConcurrentDispatch transactions at a time. It tells how many messages were
// sent.
func (s *Scheduler) dispatchAll(ctx context.Context, picked []candidate) (sent int, err error) {
	basket, total := newBasket(picked, s.options.MaxConcurrentDispatch), atomic.Int64{}
	group := run.NewGroup(ctx)
	for range min(s.options.MaxConcurrentDispatch, len(picked)) {
		group.Go(func(ctx context.Context) error {
			for ctx.Err() == nil {
				some := basket.take()
				if len(some) == 0 {
					return nil
				}
				n, err := s.dispatchSome(ctx, some, basket)
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

// dispatchSome dispatches some runs in one transaction. When one of them cannot be sent, each goes alone, and that one
// is refused. One that waits in vain for a lock keeps no others from going either, and is tried again by the next pass.
func (s *Scheduler) dispatchSome(ctx context.Context, some []candidate, b *basket) (sent int, err error) {
	parcel := &parcel{Scheduler: s, wanted: some}
	err = parcel.deliver(ctx)
	switch {
	case err == nil:
		if len(parcel.late) > 0 {
			b.putBack(parcel.late)
		}
		return len(parcel.sent), nil
	case parcel.refused == nil && pg.ClassOf(err) != pg.Busy:
		return 0, err
	case len(some) == 1 && parcel.refused == nil:
		s.log.Warn("edda: a run was not dispatched, since what it needs is locked", "run", some[0].id, "error", err)
		return 0, nil
	case len(some) == 1:
		return 0, s.refuse(ctx, *parcel.refused, err)
	}
	for _, c := range some {
		n, err := s.dispatchSome(ctx, []candidate{c}, b)
		if sent += n; err != nil || ctx.Err() != nil {
			return sent, err
		}
	}
	return sent, nil
}
