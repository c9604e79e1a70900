package bus

import (
	"context"
	"log/slog"
	"time"
)

const relayWarns = 30 * time.Second // between two warnings of a relay that cannot get rid of its messages

// tell emits the events of a turn, and writes the log. ended are the messages that its commit has deleted.
func (r *relaying) tell(ctx context.Context, b *relayed, ended []*message) {
	done := Relayed{Endpoint: r.name, Forward: b.took}
	now := b.clock()
	for _, m := range ended {
		delete(r.failing, m.ID)
		info := shownInfo(m.delivery.Info)
		switch m.fate {
		case fateDead:
			event, text := Event(DeadLettered{Endpoint: r.name, Info: info, Err: m.err, Reason: m.reason}),
				"edda: message dead-lettered"
			if m.run != nil {
				event, text = RunFailed{Endpoint: r.name, Info: info, Err: m.err, Reason: m.reason,
					Final: m.hopeless()}, "edda: run failed"
			}
			r.logMessage(ctx, slog.LevelWarn, text, m, "reason", m.reason, "error", m.err)
			r.bus.emit(event)
		case fateDropped:
			r.logMessage(ctx, slog.LevelInfo, "edda: message discarded", m, "reason", m.reason)
			r.bus.emit(Discarded{Endpoint: r.name, Info: info, Reason: m.reason})
		default:
			done.Messages++
			done.Bytes += int64(len(m.Body))
			done.Lag = max(done.Lag, now.Sub(m.since()))
		}
	}
	if done.Messages > 0 {
		r.bus.emit(done)
	}
	r.tellFailures(ctx, b, done.Messages > 0)
}

// tellFailures: the first that is to be tried again, which those behind it wait for.
func (r *relaying) tellFailures(ctx context.Context, b *relayed, through bool) {
	if through && !r.warned.IsZero() && b.wait == 0 {
		r.warned = time.Time{}
		r.options.Logger.Info("edda: relay goes on", "endpoint", r.name)
	}
	for _, m := range b.messages {
		if m.fate != fateLeft || m.err == nil {
			continue
		}
		r.bus.emit(Retried{Endpoint: r.name, Info: shownInfo(m.delivery.Info), Err: m.err, Delay: b.wait})
		level := slog.LevelDebug
		if time.Since(r.warned) >= relayWarns {
			level, r.warned = slog.LevelWarn, time.Now()
		}
		r.logMessage(ctx, level, "edda: message not relayed", m, "again_in", b.wait, "error", m.err)
	}
}

// tellWhole tells of a call of forward that failed as a whole, and of which no message is known to be the cause.
func (r *relaying) tellWhole(ctx context.Context, messages int, err error) {
	level := slog.LevelDebug
	if time.Since(r.warnedOf) >= relayWarns {
		level, r.warnedOf = slog.LevelWarn, time.Now()
	}
	r.options.Logger.Log(ctx, level, "edda: a relay's forward failed as a whole, and is given fewer messages at a time",
		"endpoint", r.name, "messages", messages, "error", err)
}

// tellSilence is of a forward that has taken longer than a shutdown would let it.
func (r *relaying) tellSilence(ctx context.Context, messages int) {
	r.options.Logger.WarnContext(ctx, "edda: the other side of a relay does not answer", "endpoint", r.name, "messages",
		messages, "waited", r.options.Drain)
}

func (r *relaying) logMessage(ctx context.Context, level slog.Level, text string, m *message, more ...any) {
	log := r.options.Logger
	if !log.Enabled(ctx, level) {
		return
	}
	info := m.delivery.Info
	about := []any{"endpoint", r.name, "message_id", info.ID.String(), "kind", shownKind(info.Kind), "attempt",
		info.Attempt}
	if f := info.Fire; f != nil {
		about = append(about, "manifest", f.Manifest, "run", f.Run.String(), "run_attempt", f.Attempt)
		if text == "edda: run failed" {
			about = append(about, "final", m.hopeless())
		}
	}
	log.Log(ctx, level, text, append(about, more...)...)
}
