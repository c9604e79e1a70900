package bus

import (
	"context"
	"log/slog"
)

// What is logged, at which level, and with which keys is listed in doc.go: people write alerts on it.

// logEnds tells the log what an operator may have to act on: messages that will not be tried again, or not now. It is
// called after the commit.
func (b *batch) logEnds(ctx context.Context) {
	for _, m := range b.messages {
		switch m.fate {
		case dead:
			if m.run != nil {
				b.logMessage(ctx, slog.LevelWarn, "edda: run failed", m, "final", m.hopeless(), "reason", m.reason, "error", m.err)
				break
			}
			b.logMessage(ctx, slog.LevelWarn, "edda: message dead-lettered", m, "reason", m.reason, "error", m.err)
		case dropped:
			b.logMessage(ctx, slog.LevelInfo, "edda: message discarded", m, "reason", m.reason)
		case again:
			b.logMessage(ctx, slog.LevelDebug, "edda: message retried", m, "delay", m.delay, "error", m.err)
		}
		if m.conflicted {
			b.logMessage(ctx, slog.LevelDebug, "edda: message conflicted", m)
		}
	}
}

func (b *batch) logMessage(ctx context.Context, level slog.Level, text string, m *message, more ...any) {
	if !b.bus.log.Enabled(ctx, level) {
		return
	}
	info := m.delivery.Info
	about := []any{"endpoint", b.name, "message_id", info.ID.String(), "kind", info.Kind, "attempt", info.Attempt}
	if f := info.Fire; f != nil {
		about = append(about, "manifest", f.Manifest, "run", f.Run.String(), "run_attempt", f.Attempt)
	}
	if name, key := m.instance.name(); name != "" {
		about = append(about, "saga", name, "key", key)
	}
	b.bus.log.Log(ctx, level, text, append(about, more...)...)
}
