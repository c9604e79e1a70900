package outbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/wire"
)

const relayWarns = 30 * time.Second // between two warnings of a relay about the other side

// reporter writes the log of a relay's term, and emits its events.
type reporter struct {
	relay    *Relay
	warned   time.Time // time of the last warning about failures
	warnedOf time.Time // time of the last warning about calls that failed as a whole
}

// pass reports the result of a pass. ended are the messages that its commit has deleted.
func (r *reporter) pass(ctx context.Context, b *batch, ended []*message) {
	relayed := event.Relayed{Endpoint: r.relay.name, Forward: b.took}
	now := b.clock()
	for _, m := range ended {
		switch m.fate {
		case fateDead:
			r.dead(ctx, m)
		case fateDiscarded:
			r.message(ctx, slog.LevelInfo, "edda: message discarded", m, "reason", m.reason)
			r.emit(event.Discarded{Endpoint: r.relay.name, Info: wire.ShownInfo(m.delivery.Info), Reason: m.reason})
		default:
			relayed.Messages++
			relayed.Bytes += int64(len(m.Body))
			relayed.Lag = max(relayed.Lag, now.Sub(m.since()))
		}
	}
	if relayed.Messages > 0 {
		r.emit(relayed)
	}
	r.failures(ctx, b, relayed.Messages > 0)
}

func (r *reporter) emit(e event.Event) { r.relay.border.Events(e) }

func (r *reporter) dead(ctx context.Context, m *message) {
	info := wire.ShownInfo(m.delivery.Info)
	if m.run == nil {
		r.message(ctx, slog.LevelWarn, "edda: message dead-lettered", m, "reason", m.reason, "error", m.err)
		r.emit(event.DeadLettered{Endpoint: r.relay.name, Info: info, Err: m.err, Reason: m.reason})
		return
	}
	final := m.hopeless()
	r.message(ctx, slog.LevelWarn, "edda: run failed", m, "final", final, "reason", m.reason, "error", m.err)
	r.emit(event.RunFailed{Endpoint: r.relay.name, Info: info, Err: m.err, Reason: m.reason, Final: final})
}

// failures reports the first message that will be retried. Messages behind it wait for it.
func (r *reporter) failures(ctx context.Context, b *batch, through bool) {
	if through && !r.warned.IsZero() && b.wait == 0 {
		r.warned = time.Time{}
		r.relay.options.Logger.Info("edda: relay recovered", "endpoint", r.relay.name)
	}
	for _, m := range b.messages {
		if m.fate != fateLeft || m.err == nil {
			continue
		}
		r.emit(event.Retried{Endpoint: r.relay.name, Info: wire.ShownInfo(m.delivery.Info), Err: m.err, Delay: b.wait})
		r.message(ctx, levelOf(&r.warned), "edda: message not relayed", m, "again_in", b.wait, "error", m.err)
	}
}

// levelOf returns the level of a repeated warning: Warn once per relayWarns, and Debug in between.
func levelOf(last *time.Time) slog.Level {
	if time.Since(*last) < relayWarns {
		return slog.LevelDebug
	}
	*last = time.Now()
	return slog.LevelWarn
}

// whole reports a call of forward that failed as a whole, without a known culprit among its messages.
func (r *reporter) whole(ctx context.Context, messages int, err error) {
	r.relay.options.Logger.Log(ctx, levelOf(&r.warnedOf),
		"edda: a relay's forward failed, and gets fewer messages at a time",
		"endpoint", r.relay.name, "messages", messages, "error", err)
}

// silence reports a call of forward that takes longer than Drain.
func (r *reporter) silence(ctx context.Context, messages int) {
	r.relay.options.Logger.WarnContext(ctx, "edda: the other side of a relay does not answer",
		"endpoint", r.relay.name, "messages", messages, "waited", r.relay.options.Drain)
}

// uncopied reports messages that were relayed without a copy.
func (r *reporter) uncopied(ctx context.Context, ended []*message) {
	for _, m := range ended {
		if m.fate == fateRelayed {
			r.message(ctx, slog.LevelWarn, "edda: the copy of a relayed message was not kept", m)
		}
	}
}

func (r *reporter) message(ctx context.Context, level slog.Level, text string, m *message, more ...any) {
	log := r.relay.options.Logger
	if !log.Enabled(ctx, level) {
		return
	}
	log.Log(ctx, level, text, append(wire.LogArgs(r.relay.name, &m.delivery.Info), more...)...)
}
