package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/batch"
	"github.com/edda-go/edda/internal/engine/leased"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/counters"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// consumer is the engine of one Run.
type consumer interface {
	wake.Waker
	// Run consumes until ctx ends. Handlers run until they return or work ends. cancel ends work if they take too long.
	Run(ctx, work context.Context, cancel context.CancelCauseFunc) error
}

// consume runs the engine, and the loops that every endpoint needs.
func (e *Endpoint) consume(ctx context.Context, pool *pg.Pool) error {
	work, cancel := context.WithCancelCause(wire.WithKey(context.WithoutCancel(ctx), e.resolved.schemaID))
	defer cancel(nil)
	e.alarm = wake.NewAlarm(e.options.Poll)
	engine := e.newConsumer(pool)
	defer attach(e, engine)()
	side := run.NewGroup(ctx)
	side.Go(func(ctx context.Context) error { return e.alarm.Tick(ctx, engine.Wake) })
	side.Go(e.settings.Run)
	if e.options.Ordered == Unordered {
		side.Go(e.unpark)
	}
	side.Go(e.awaitLimit)
	side.Go(e.writeCounters)
	e.bus.session.AwaitLock(ctx)
	err := engine.Run(ctx, work, cancel)
	if err == nil && errors.Is(context.Cause(work), ErrDrain) {
		err = ErrDrain
	}
	side.Stop()
	err = errors.Join(err, side.Wait())
	e.flushCounters(ctx)
	return err
}

func (e *Endpoint) newConsumer(pool *pg.Pool) consumer {
	e.halt = func() {}
	if e.handlers.Leased {
		return leased.New(e.leasedNeeds(pool))
	}
	engine := batch.New(e.batchNeeds(pool), e.bus.schema)
	e.halt = engine.Halt
	return engine
}

func (e *Endpoint) batchNeeds(pool *pg.Pool) batch.Needs {
	b, o := e.bus, &e.options
	return batch.Needs{
		To: e.recipient, Pool: pool, Session: b.session, Sagas: b.tables.sagas, Breaker: e.breaker, Alarm: e.alarm,
		Outage: b.outage, Counts: e.counts, Strategy: e.strategy, Fence: e.fence, Planner: e.planner,
		PollOnly: b.wakeup == PollOnly, Emit: b.hooks.Emit, Finished: e.finished,
		Limit:    e.permits.known(b.tables.limits),
		Settings: e.settings.Follower, Workers: e.settings.workers,
		Options: batch.Options{
			BatchMax: o.BatchMax, BatchBytes: o.BatchBytes, MaxConflicts: o.MaxConflicts, MaxCrashes: o.MaxCrashes,
			Poll: o.Poll, Drain: o.Drain, Hang: e.held.hang,
		},
	}
}

func (e *Endpoint) leasedNeeds(pool *pg.Pool) leased.Needs {
	b, o := e.bus, &e.options
	return leased.Needs{
		Terms: leased.Terms{
			To: e.recipient, Pool: pool, Breaker: e.breaker, Alarm: e.alarm, Hub: b.hub,
			Options: leased.Options{
				Concurrency: o.Concurrency, BatchMax: o.BatchMax, BatchBytes: o.BatchBytes, MaxCrashes: o.MaxCrashes,
				StepTimeout: o.StepTimeout, Lease: o.Lease, Poll: o.Poll, Drain: o.Drain,
				Ordered: o.Ordered != Unordered, Strict: o.Ordered == Strict, Notifies: b.wakeup == Notify,
			},
			Session: b.session, Limit: e.permits.known(b.tables.limits),
		},
		Settings: e.settings.Follower, Workers: e.settings.workers, Outage: b.outage, Emit: b.hooks.Emit,
		Finished: func(ctx context.Context, done *outcome.Effects) bool {
			e.counts.AddFinished(done)
			return e.finished(ctx, done)
		},
	}
}

const unparkRows = 1000 // moved by one transaction

// unpark is for an endpoint without order, whose queue an ordered program consumed before, or consumes at the same
// time during a deploy. It moves the messages that the ordered program has parked back into the queue, as soon as no
// process has their lane. It runs at the start, and then at growing intervals.
func (e *Endpoint) unpark(ctx context.Context) error {
	for pause := e.options.Poll; ; pause = min(2*pause, cleanEvery) {
		if err := e.unparkOnce(ctx); err != nil && ctx.Err() == nil {
			e.bus.calm.Warn("edda: parked messages were not moved back", "endpoint", e.name, "error", err)
		}
		if run.Sleep(ctx, run.Jitter(pause)) != nil {
			return nil
		}
	}
}

func (e *Endpoint) unparkOnce(ctx context.Context) error {
	total := 0
	for moved := unparkRows; moved == unparkRows; total += moved {
		pipeline := &pgx.Batch{}
		queue.Open(pipeline, nil)
		pipeline.Queue(e.queue.SQL("unpark"), e.queue.ID,
			unparkRows).QueryRow(func(row pgx.Row) error { return row.Scan(&moved) })
		if err := e.bus.pool.SendBatch(ctx, pipeline).Close(); err != nil {
			return fmt.Errorf("move parked messages: %w", pgerr.Explain(err))
		}
	}
	if total > 0 {
		e.bus.log.Info("edda: parked messages were moved back", "endpoint", e.name, "messages", total)
		e.alarm.Wake()
	}
	return nil
}

const (
	countersEvery  = 10 * time.Second
	countersWithin = 2 * time.Second // one write takes at most this long
	countersKept   = 14 * 24 * time.Hour
)

// writeCounters adds the endpoint's counts to the table about every ten seconds, if there are any.
func (e *Endpoint) writeCounters(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(countersEvery)) == nil {
		e.flushCounters(ctx)
	}
	return nil
}

// flushCounters writes once. Counts that could not be written are dropped: a repetition could count them twice.
func (e *Endpoint) flushCounters(ctx context.Context) {
	counted, since := e.counts.Collect()
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countersWithin) // write them during a drain too
	defer cancel()
	err := e.bus.tables.counters.Add(ctx, e.bus.pool, counters.Endpoint{
		Name: e.name, Concurrency: e.options.Concurrency, BatchMax: e.options.BatchMax, Since: since, Sagas: counted,
	})
	if err != nil {
		e.bus.calm.Warn("edda: counters were not written", "endpoint", e.name, "error", pgerr.Explain(err))
	}
}
