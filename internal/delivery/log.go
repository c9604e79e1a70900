package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/wire"
)

// What is logged, at which level, and with which keys is listed in doc.go: people write alerts on it.

// LogEnds tells the log what an operator may have to act on: messages that will not be tried again, or not now. It is
// called after the commit.
func (e *Effects) LogEnds(ctx context.Context) {
	for _, a := range e.In.Retried {
		if a.Of.Fate != FateLeft { // what was lost to a conflict has not happened
			e.logRetry(ctx, a, 0)
		}
	}
	for _, m := range e.In.Messages {
		switch m.Fate {
		case FateDead:
			m.Delivery.Info.Attempt = m.Attempt // as the letter has it: a message that was not run had no attempt
			if m.Firing.Run != nil {
				e.logMessage(ctx, slog.LevelWarn, "edda: run failed", m, "final", m.Hopeless(), "reason", m.Reason,
					"error", m.Err)
				break
			}
			e.logMessage(ctx, slog.LevelWarn, "edda: message dead-lettered", m, "reason", m.Reason, "error", m.Err)
		case FateDropped:
			e.logMessage(ctx, slog.LevelInfo, "edda: message discarded", m, "reason", m.Reason)
		case FateAgain:
			e.logRetry(ctx, FailedAttempt{Of: m, Info: m.Delivery.Info, Err: m.Err}, m.Delay)
		}
		if m.Conflicted {
			e.logMessage(ctx, slog.LevelDebug, "edda: message conflicted", m)
		}
	}
}

// logRetry tells of an attempt after which another follows. The first failure of a message is news; the others repeat
// it, and waiting for an instance or for another program is none.
func (e *Effects) logRetry(ctx context.Context, a FailedAttempt, delay time.Duration) {
	level := slog.LevelDebug
	if a.Info.Attempt == 1 && a.Of.Attempt > 0 {
		level = slog.LevelInfo
	}
	e.logAttempt(ctx, level, "edda: message retried", a, "delay", delay, "error", a.Err)
}

func (e *Effects) logMessage(ctx context.Context, level slog.Level, text string, m *Message, more ...any) {
	e.logAttempt(ctx, level, text, FailedAttempt{Of: m, Info: m.Delivery.Info}, more...)
}

func (e *Effects) logAttempt(ctx context.Context, level slog.Level, text string, a FailedAttempt, more ...any) {
	if !e.In.To.Log.Enabled(ctx, level) {
		return
	}
	about := wire.LogArgs(e.In.To.Name, &a.Info)
	if name, key := a.Of.Instance.Name(); name != "" {
		about = append(about, "saga", name, "key", key)
	}
	e.In.To.Log.Log(ctx, level, text, append(about, more...)...)
}
