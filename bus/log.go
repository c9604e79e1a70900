package bus

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/edda-go/edda/saga"
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
	about := []any{"endpoint", b.name, "message_id", info.ID.String(), "kind", shownKind(info.Kind), "attempt", info.Attempt}
	if f := info.Fire; f != nil {
		about = append(about, "manifest", f.Manifest, "run", f.Run.String(), "run_attempt", f.Attempt)
	}
	if name, key := m.instance.name(); name != "" {
		about = append(about, "saga", name, "key", key)
	}
	b.bus.log.Log(ctx, level, text, append(about, more...)...)
}

const (
	mostShownKind  = 80
	mostShownPanic = 500
	mostShownStack = 8 << 10
)

// shownKind is a kind as the log and events have it. Whoever may write to a topic, or has rights on a queue, chooses
// the kinds there: any bytes of any length.
func shownKind(kind string) string {
	if saga.CheckName(kind) == nil {
		return kind
	}
	quoted := strconv.Quote(shown(kind, mostShownKind))
	return quoted[1 : len(quoted)-1]
}

// shownInfo is info as events have it.
func shownInfo(info saga.Info) saga.Info {
	info.Kind = shownKind(info.Kind)
	return info
}

// shown is the beginning of a text that may be long.
func shown(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
