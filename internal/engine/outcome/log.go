package outcome

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/message"
)

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
