package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/outcome"
)

// hooks are the functions of Options that the bus calls.
type hooks struct {
	handlers.Hooks
	handlers.Receivers
	middleware func(endpoint string) Middleware
}

// within puts the middleware of the bus around the handlers of an endpoint.
func within(of func(endpoint string) Middleware, endpoint string, h *handlers.Table) *handlers.Table {
	if of == nil {
		return h
	}
	m := of(endpoint)
	if m == nil {
		return h
	}
	return h.Within(func(next handlers.Next) handlers.Next { return m(next) })
}

// finished does the work that follows the commit: wake-ups, the log, and events. It reports whether the commit had
// failures and no success.
func (e *Endpoint) finished(ctx context.Context, done *outcome.Effects) (failing bool) {
	done.Wake(ctx)
	noteChanges(e.bus.watches, done.In.Messages)
	if done.In.Pauses() {
		haltAfterPause(ctx, e, done)
	}
	e.memory.Forget(done.In.Gone)
	done.Log(ctx)
	if e.bus.hooks.Any() {
		emitEnds(e.bus, done)
	}
	r := outcome.ReportOf(done, nil)
	e.pace(r)
	return r.Done == 0 && r.Failures > 0
}

// haltAfterPause keeps this process from beginning a batch before it has read the pause, and notifies the other
// processes.
func haltAfterPause(ctx context.Context, e *Endpoint, done *outcome.Effects) {
	if done.Paused {
		e.halt()
		e.settings.Pause(done.In.Pausing.Reason, done.In.Clock())
	}
	announceSettings(ctx, e.bus, e.queue.ID)
}

// pace counts a batch, and logs when the endpoint slows down or recovers.
func (e *Endpoint) pace(r outcome.Report) {
	switch c, failures, slowFor := e.breaker.Note(r.Done, r.Failures); c {
	case contention.Slowed:
		e.bus.log.Warn("edda: endpoint slowed down", "endpoint", e.name, "failures", failures, "pause",
			e.options.BreakerPause, "error", r.Failure)
		e.bus.hooks.Emit(event.Slowed{Endpoint: e.name, Failures: int(failures), Err: r.Failure})
	case contention.Recovered:
		e.bus.log.Info("edda: endpoint recovered", "endpoint", e.name, "slow_for", slowFor)
		e.bus.hooks.Emit(event.Recovered{Endpoint: e.name, SlowFor: slowFor})
	}
}

// emitEnds emits the fates of the messages of a transaction.
func emitEnds(b *Bus, e *outcome.Effects) {
	r := outcome.ReportOf(e, nil)
	e.Emit(&b.hooks.Receivers, event.BatchDone{Endpoint: e.In.To.Name, Taken: r.Taken, Handled: r.Consumed,
		Left: r.Taken - r.Handled, Took: time.Since(e.In.Begun)})
}
