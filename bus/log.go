package bus

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/wire"
)

// What is logged, at which level, and with which keys is listed in doc.go: people write alerts on it.

// logEnds tells the log what an operator may have to act on: messages that will not be tried again, or not now. It is
// called after the commit.
func (e *effects) logEnds(ctx context.Context) {
	for _, a := range e.in.retried {
		if a.of.fate != fateLeft { // what was lost to a conflict has not happened
			e.logRetry(ctx, a, 0)
		}
	}
	for _, m := range e.in.messages {
		switch m.fate {
		case fateDead:
			m.delivery.Info.Attempt = m.Attempt // as the letter has it: a message that was not run had no attempt
			if m.firing.run != nil {
				e.logMessage(ctx, slog.LevelWarn, "edda: run failed", m, "final", m.hopeless(), "reason", m.reason,
					"error", m.err)
				break
			}
			e.logMessage(ctx, slog.LevelWarn, "edda: message dead-lettered", m, "reason", m.reason, "error", m.err)
		case fateDropped:
			e.logMessage(ctx, slog.LevelInfo, "edda: message discarded", m, "reason", m.reason)
		case fateAgain:
			e.logRetry(ctx, failedAttempt{of: m, info: m.delivery.Info, err: m.err}, m.delay)
		}
		if m.conflicted {
			e.logMessage(ctx, slog.LevelDebug, "edda: message conflicted", m)
		}
	}
}

// logRetry tells of an attempt after which another follows. The first failure of a message is news; the others repeat
// it, and waiting for an instance or for another program is none.
func (e *effects) logRetry(ctx context.Context, a failedAttempt, delay time.Duration) {
	level := slog.LevelDebug
	if a.info.Attempt == 1 && a.of.Attempt > 0 {
		level = slog.LevelInfo
	}
	e.logAttempt(ctx, level, "edda: message retried", a, "delay", delay, "error", a.err)
}

func (e *effects) logMessage(ctx context.Context, level slog.Level, text string, m *message, more ...any) {
	e.logAttempt(ctx, level, text, failedAttempt{of: m, info: m.delivery.Info}, more...)
}

func (e *effects) logAttempt(ctx context.Context, level slog.Level, text string, a failedAttempt, more ...any) {
	if !e.in.ep.bus.log.Enabled(ctx, level) {
		return
	}
	about := wire.LogArgs(e.in.ep.name, &a.info)
	if name, key := a.of.instance.name(); name != "" {
		about = append(about, "saga", name, "key", key)
	}
	e.in.ep.bus.log.Log(ctx, level, text, append(about, more...)...)
}

const (
	mostShownPanic = 500
	mostShownStack = 8 << 10
)

// shown is the beginning of a text that may be long.
func shown(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
