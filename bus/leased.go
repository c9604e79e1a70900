package bus

import (
	"context"
	"errors"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/wake"
)

// leased is one Run of an endpoint whose handlers run outside of transactions. Each part has a loop of its own: one
// claims messages, one finishes those whose handlers have ended, one extends the leases of the others, one gives up
// what cannot be trusted, and one revives the lanes of dead processes. The first three have one statement each on its
// way at a time, and what comes up meanwhile goes with the next. The parts share what is in hand, see claims.
type leased struct {
	*terms
	claims   *claims
	runner   *runner
	claimer  *claimer
	finisher *finisher
	extender *extender
	lanes    *lanes
}

// newLeased makes the parts. Handlers run until work ends.
func newLeased(work context.Context, e *Endpoint, pool *pg.Pool) *leased {
	l := &leased{terms: newTerms(e, pool)}
	l.claims = newClaims(l.terms)
	l.extender = &extender{terms: l.terms, claims: l.claims, heartbeat: run.NewNudge()}
	l.runner = &runner{terms: l.terms, claims: l.claims, work: work, handlers: run.NewGroup(work),
		heartbeat: l.extender.heartbeat, closed: make(chan struct{})}
	l.lanes = &lanes{terms: l.terms, claims: l.claims, runner: l.runner}
	l.claimer = &claimer{terms: l.terms, claims: l.claims, runner: l.runner, lanes: l.lanes, retry: newPatience()}
	l.claimer.quarantine = &quarantine{terms: l.terms, claims: l.claims, runner: l.runner, lanes: l.lanes}
	l.finisher = &finisher{terms: l.terms, claims: l.claims, lanes: l.lanes, failing: &l.claimer.failing,
		heartbeat: l.extender.heartbeat, closed: l.runner.closed, finished: make(chan struct{})}
	return l
}

// runLeased is runWorkers for an endpoint with Handle.
func (e *Endpoint) runLeased(ctx context.Context, pool *pg.Pool) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	e.alarm = wake.NewAlarm(e.options.Poll)
	l := newLeased(work, e, pool)
	defer attach(e, e.alarm)()
	defer e.bus.hub.Listen(queue.CancelPrefix, wake.OfQueue(e.queue.ID, l.extender.heartbeat.Send))()

	side := run.NewGroup(ctx)
	side.Go(func(ctx context.Context) error { return e.alarm.Tick(ctx, e.alarm.Wake) })
	side.Go(e.settings.Run)
	side.Go(func(ctx context.Context) error { return l.runner.followSettings(ctx, l.claimer) })
	alive := run.NewGroup(work) // as long as handlers run, a drain included
	alive.Go(l.claims.logLosses)
	e.bus.session.AwaitLock(ctx)
	if l.ordered() {
		side.Go(l.lanes.sweep)
	} else {
		side.Go(e.unpark)
	}
	side.Go(func(ctx context.Context) error { return e.awaitLimit(ctx, e.bus.pool) })
	side.Go(e.writeCounters)
	err := l.run(ctx, work, cancel)
	if err == nil && errors.Is(context.Cause(work), ErrDrain) {
		err = ErrDrain
	}
	side.Stop()
	err = errors.Join(err, side.Wait(), alive.Wait())
	l.claims.logLost()
	e.flushCounters(ctx)
	return err
}

// run claims until ctx ends, and returns when everything that was claimed is finished.
func (l *leased) run(ctx, work context.Context, cancel context.CancelCauseFunc) error {
	background := context.WithoutCancel(ctx)
	loops := run.NewGroup(ctx)
	loops.Go(func(taking context.Context) error {
		err := l.claimer.run(taking)
		l.runner.stop()
		cancel(nil)
		return err
	})
	loops.Go(func(context.Context) error {
		defer l.releaseAll(background)
		return l.finisher.run(background)
	})
	loops.Go(func(context.Context) error { l.extender.run(background, l.finisher.finished); return nil })
	loops.Go(func(context.Context) error { distrust(l.claims, l.finisher.finished); return nil })
	loops.Go(func(taking context.Context) error { l.ep.drain(taking, work, cancel); return nil })
	return loops.Wait()
}
