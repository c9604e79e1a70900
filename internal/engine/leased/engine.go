package leased

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
)

// Causes of the end of a handler's context before its time.
var (
	ErrClaimLost = errors.New("the claim on the message was lost")
	ErrCancelled = errors.New("cancelled")
)

// Needs are the dependencies of an engine.
type Needs struct {
	Terms
	Settings *settings.Follower
	Workers  func(settings.Settings) int // how many handlers may run at a time, 0 while the endpoint is paused
	Outage   *pg.Outage
	Emit     func(...event.Event)
	// Finished does the work that follows the commit of a finish; it reports whether the finish had failures and no
	// success.
	Finished func(context.Context, *outcome.Effects) (failing bool)
}

// Engine is one Run of an endpoint whose handlers run outside of transactions. Each part has a loop of its own: one
// claims messages, one finishes messages whose handlers have ended, one extends the leases of the others, one gives
// up claims that cannot be trusted, and one revives the lanes of dead processes. The first three have one statement
// each in flight at a time, and collect further work for the next. The parts share the messages in hand, see claims.
type Engine struct {
	*Terms
	claims   *claims
	runner   *runner
	claimer  *claimer
	finisher *finisher
	extender *extender
	lanes    *lanes
	emit     func(...event.Event)
}

// New makes an engine and its parts. It starts nothing.
func New(n Needs) *Engine {
	t := &n.Terms
	t.begin()
	l := &Engine{Terms: t, claims: newClaims(t, n.Workers(n.Settings.Now())), emit: n.Emit}
	l.extender = &extender{Terms: t, claims: l.claims, heartbeat: run.NewNudge()}
	l.runner = &runner{Terms: t, claims: l.claims, heartbeat: l.extender.heartbeat, closed: make(chan struct{}),
		settings: n.Settings, workers: n.Workers}
	l.lanes = &lanes{Terms: t, claims: l.claims, runner: l.runner}
	l.claimer = &claimer{Terms: t, claims: l.claims, runner: l.runner, lanes: l.lanes, retry: contention.NewPatience(),
		outage: n.Outage}
	l.claimer.quarantine = &quarantine{Terms: t, claims: l.claims, runner: l.runner, lanes: l.lanes}
	l.finisher = &finisher{Terms: t, claims: l.claims, lanes: l.lanes, failing: &l.claimer.failing,
		heartbeat: l.extender.heartbeat, closed: l.runner.closed, after: n.Finished,
		history: outcome.NewHistorian(t.To)}
	return l
}

// Wake makes the engine claim, if it is idle. It reports whether it was.
func (l *Engine) Wake() bool { return l.Alarm.Wake() }

// WakeAt wakes the engine at the given time.
func (l *Engine) WakeAt(t time.Time) { l.Alarm.WakeAt(t) }

// Run claims until ctx ends, and returns when every claimed message is finished. Handlers run until work ends. cancel
// ends work: when no handler runs any more, or with run.ErrDrain if they have not ended in time.
func (l *Engine) Run(ctx, work context.Context, cancel context.CancelCauseFunc) error {
	defer l.Hub.Listen(queue.CancelPrefix, wake.OfQueue(l.To.Queue.ID, l.extender.heartbeat.Send))()
	l.runner.begin(work)
	side := run.NewGroup(ctx)
	side.Go(func(ctx context.Context) error { return l.runner.followSettings(ctx, l.claimer) })
	if l.Options.Ordered {
		side.Go(l.lanes.sweep)
	}
	alive := run.NewGroup(work)
	alive.Go(l.logLosses)
	err := l.runLoops(ctx, work, cancel)
	side.Stop()
	err = errors.Join(err, side.Wait(), alive.Wait())
	l.logLost()
	return err
}

func (l *Engine) runLoops(ctx, work context.Context, cancel context.CancelCauseFunc) error {
	background := context.WithoutCancel(ctx)
	unfinished, finished := context.WithCancel(background)
	loops := run.NewGroup(ctx)
	loops.Go(func(taking context.Context) error {
		err := l.claimer.run(taking)
		l.runner.stop()
		cancel(nil)
		return err
	})
	loops.Go(func(context.Context) error {
		defer l.releaseAll(background)
		defer finished()
		return l.finisher.run(background)
	})
	loops.Go(func(context.Context) error { l.extender.run(unfinished); return nil })
	loops.Go(func(context.Context) error { l.claims.distrust(unfinished); return nil })
	loops.Go(func(taking context.Context) error {
		run.Drain(taking, work, l.Options.Drain, cancel)
		if errors.Is(context.Cause(work), run.ErrDrain) && run.Sleep(unfinished, run.Grace) == nil {
			finished() // Run may return before a handler: its claim is not extended, and ends for a different process
		}
		return nil
	})
	return loops.Wait()
}

// logLosses writes lost claims to the log, and emits events, until ctx ends. It calls functions of the user, so no
// other loop waits for it.
func (l *Engine) logLosses(ctx context.Context) error {
	for {
		select {
		case <-l.claims.losses:
			l.logLost()
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *Engine) logLost() {
	for _, m := range l.claims.takeLost() {
		l.To.Log.Warn("edda: a claim was lost", wire.LogArgs(l.To.Name, &m.msg.Delivery.Info)...)
		l.emit(event.ClaimLost{Endpoint: l.To.Name, Info: wire.ShownInfo(m.msg.Delivery.Info)})
	}
}
