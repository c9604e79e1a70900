package outcome

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
)

// Emit emits the fates of the messages, followed by more. It is called after the commit.
func (e *Effects) Emit(to *handlers.Receivers, more ...event.Event) {
	handled := to.WantHandled()
	all := make([]event.Event, 0, len(more)+8)
	emit := func(one event.Event) { all = append(all, one) }
	for _, a := range e.In.Retried {
		if a.Of.Fate != message.FateLeft { // a step that lost to a conflict has no effect
			emit(event.Retried{Endpoint: e.In.To.Name, Info: wire.ShownInfo(a.Info), Err: a.Err})
		}
	}
	for _, m := range e.In.Messages {
		if m.Fate != message.FateDone || handled {
			if about := e.endOf(m); about != nil {
				emit(about)
			}
		}
		if m.Conflicted {
			name, key := m.Instance.Name()
			emit(event.Conflicted{Endpoint: e.In.To.Name, Info: wire.ShownInfo(m.Delivery.Info), Saga: name, Key: key})
		}
	}
	to.Emit(append(all, more...)...)
}

// endOf returns the event about the fate of a message, or nil if it stays in the queue as it is.
func (e *Effects) endOf(m *message.Message) event.Event {
	endpoint, info := e.In.To.Name, wire.ShownInfo(m.Delivery.Info)
	switch m.Fate {
	case message.FateDone:
		name, key := m.Instance.Name()
		return event.Handled{Endpoint: endpoint, Info: info, Saga: name, Key: key, Step: m.Step.Took,
			Critical: e.In.Clock().Sub(since(m))}
	case message.FateAgain:
		return event.Retried{Endpoint: endpoint, Info: info, Err: m.Err, Delay: m.Delay}
	case message.FateDead:
		if m.Firing.Run != nil {
			return event.RunFailed{Endpoint: endpoint, Info: info, Err: m.Err, Reason: m.Reason,
				Final: m.Firing.Hopeless}
		}
		return event.DeadLettered{Endpoint: endpoint, Info: info, Err: m.Err, Reason: m.Reason}
	case message.FateDropped:
		return event.Discarded{Endpoint: endpoint, Info: info, Reason: m.Reason}
	}
	return nil
}

// Settled returns the fates of the messages of a transaction; err is why it was rolled back, or nil.
func Settled(d *message.Decoder, err error) []event.Settled {
	all := make([]event.Settled, 0, len(d.Retried)+len(d.Messages))
	add := func(m *message.Message, info saga.Info, fate event.Fate, cause error) {
		if err != nil {
			fate, cause = "", nil
		}
		name, key := m.Instance.Name()
		all = append(all, event.Settled{Info: wire.ShownInfo(info), Saga: name, Key: key, Fate: fate, Err: cause})
	}
	for _, a := range d.Retried {
		add(a.Of, a.Info, event.FateRetried, a.Err)
	}
	for _, m := range d.Messages {
		add(m, m.Delivery.Info, FateOf(m), m.Err)
	}
	return all
}

// FateOf returns the fate of m in the terms of events.
func FateOf(m *message.Message) event.Fate {
	if m.Conflicted {
		return event.FateConflicted
	}
	return [...]event.Fate{
		message.FateLeft: event.FateLeft, message.FateDone: event.FateHandled, message.FateAgain: event.FateRetried,
		message.FateDead: event.FateDead, message.FateDropped: event.FateDiscarded,
		message.FateMoved: event.FateMoved,
	}[m.Fate]
}

// Log logs fates that may need an operator: messages that will not be tried again, or not now. It is called after the
// commit. docs/reference/log.md lists the lines with their levels and keys: people write alerts on them.
func (e *Effects) Log(ctx context.Context) {
	for _, a := range e.In.Retried {
		if a.Of.Fate != message.FateLeft { // a step that lost to a conflict has no effect
			e.logRetry(ctx, a, 0)
		}
	}
	for _, m := range e.In.Messages {
		switch m.Fate {
		case message.FateDead:
			if m.Delivery.Info.Attempt != m.Attempt { // as in the dead letter: a message that did not run has 0
				m.Delivery.Info.Attempt = m.Attempt
			}
			if m.Firing.Run != nil {
				e.logMessage(ctx, slog.LevelWarn, "edda: run failed", m, "final", m.Firing.Hopeless, "reason", m.Reason,
					"error", m.Err)
				break
			}
			e.logMessage(ctx, slog.LevelWarn, "edda: message dead-lettered", m, "reason", m.Reason, "error", m.Err)
		case message.FateDropped:
			e.logMessage(ctx, slog.LevelInfo, "edda: message discarded", m, "reason", m.Reason)
		case message.FateAgain:
			e.logRetry(ctx, message.FailedAttempt{Of: m, Info: m.Delivery.Info, Err: m.Err}, m.Delay)
		}
		if m.Conflicted {
			e.logMessage(ctx, slog.LevelDebug, "edda: message conflicted", m)
		}
	}
}

// logRetry logs an attempt that will be followed by a retry. The first failure of a message is logged at a higher
// level than its repetitions; waiting for an instance or for a newer program is no failure.
func (e *Effects) logRetry(ctx context.Context, a message.FailedAttempt, delay time.Duration) {
	level := slog.LevelDebug
	if a.Info.Attempt == 1 && a.Of.Attempt > 0 {
		level = slog.LevelInfo
	}
	e.logAttempt(ctx, level, "edda: message retried", a, "delay", delay, "error", a.Err)
}

func (e *Effects) logMessage(ctx context.Context, level slog.Level, text string, m *message.Message, more ...any) {
	e.logAttempt(ctx, level, text, message.FailedAttempt{Of: m, Info: m.Delivery.Info}, more...)
}

func (e *Effects) logAttempt(ctx context.Context, level slog.Level, text string, a message.FailedAttempt, more ...any) {
	if !e.In.To.Log.Enabled(ctx, level) {
		return
	}
	about := wire.LogArgs(e.In.To.Name, &a.Info)
	if name, key := a.Of.Instance.Name(); name != "" {
		about = append(about, "saga", name, "key", key)
	}
	e.In.To.Log.Log(ctx, level, text, append(about, more...)...)
}
