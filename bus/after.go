package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/trouble"
	"github.com/edda-go/edda/internal/wire"
)

// after does what must not happen before the commit: wake-ups, the log, and events.
func (e *Endpoint) after(ctx context.Context, done *delivery.Effects) {
	done.Wake(ctx)
	noteChanges(e.bus.watches, done.In.Messages)
	if done.In.Pauses() {
		haltAfterPause(ctx, e, done)
	}
	e.memory.Forget(done.In.Gone)
	done.LogEnds(ctx)
	if e.bus.events != nil {
		e.bus.emitEnds(done)
	}
}

// haltAfterPause lets this process begin no other batch, without waiting for what it will read, and tells the others.
func haltAfterPause(ctx context.Context, e *Endpoint, done *delivery.Effects) {
	if done.Paused {
		if e.pump != nil {
			e.pump.halt(true)
		}
		e.settings.Pause(done.In.Pausing.Reason, done.In.Clock())
	}
	e.bus.announceSettings(ctx, e.queue.ID)
}

// reportOf returns how a transaction ended; err is why it was rolled back.
func reportOf(e *delivery.Effects, err error) report {
	r := report{taken: len(e.In.Messages), failures: e.In.Failures, failure: e.In.Failure}
	for _, m := range e.In.Messages {
		switch {
		case err != nil:
		case m.Fate != delivery.FateLeft:
			r.handled++
			if m.Fate == delivery.FateDone || m.Fate == delivery.FateDropped && m.Err == nil {
				r.done++
			}
		case m.Instance != nil && (m.Instance.Status == delivery.BusyHere || m.Instance.Status == delivery.BusyThere):
			r.busy++
		}
	}
	return r
}

// pace counts a batch, and says when the endpoint slows down or recovers.
func (e *Endpoint) pace(r report) {
	switch c, failures, slowFor := e.breaker.Note(r.done, r.failures); c {
	case trouble.Slowed:
		e.bus.log.Warn("edda: endpoint slowed down", "endpoint", e.name, "failures", failures, "pause",
			e.options.BreakerPause, "error", r.failure)
		e.bus.emit(Slowed{Endpoint: e.name, Failures: int(failures), Err: r.failure})
	case trouble.Recovered:
		e.bus.log.Info("edda: endpoint recovered", "endpoint", e.name, "slow_for", slowFor)
		e.bus.emit(Recovered{Endpoint: e.name, SlowFor: slowFor})
	}
}

// emitEnds emits what became of the messages of a transaction.
func (b *Bus) emitEnds(e *delivery.Effects) {
	for _, a := range e.In.Retried {
		if a.Of.Fate != delivery.FateLeft { // what was lost to a conflict has not happened
			b.emit(Retried{Endpoint: e.In.To.Name, Info: wire.ShownInfo(a.Info), Err: a.Err})
		}
	}
	handled := 0
	for _, m := range e.In.Messages {
		name, key := m.Instance.Name()
		info := wire.ShownInfo(m.Delivery.Info)
		switch m.Fate {
		case delivery.FateDone:
			handled++
			from := m.Due
			if m.Sent.After(from) {
				from = m.Sent
			}
			b.emit(Handled{Endpoint: e.In.To.Name, Info: info, Saga: name, Key: key, Step: m.Step.Took,
				Critical: e.In.Clock().Sub(from)})
		case delivery.FateAgain:
			b.emit(Retried{Endpoint: e.In.To.Name, Info: info, Err: m.Err, Delay: m.Delay})
		case delivery.FateDead:
			if m.Firing.Run != nil {
				b.emit(RunFailed{Endpoint: e.In.To.Name, Info: info, Err: m.Err, Reason: m.Reason,
					Final: m.Hopeless()})
				continue
			}
			b.emit(DeadLettered{Endpoint: e.In.To.Name, Info: info, Err: m.Err, Reason: m.Reason})
		case delivery.FateDropped:
			b.emit(Discarded{Endpoint: e.In.To.Name, Info: info, Reason: m.Reason})
		}
		if m.Conflicted {
			b.emit(Conflicted{Endpoint: e.In.To.Name, Info: info, Saga: name, Key: key})
		}
	}
	b.emit(BatchDone{Endpoint: e.In.To.Name, Taken: len(e.In.Messages), Handled: handled,
		Left: len(e.In.Messages) - reportOf(e, nil).handled, Took: time.Since(e.In.Begun)})
}
