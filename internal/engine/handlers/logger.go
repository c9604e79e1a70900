package handlers

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
)

// Logger returns a logger over the handler of to, or of slog.Default() if to is nil. A record delays its caller by
// Patience at most, whatever the handler does. A handler that has not returned gets no records until it has; then it
// gets a warning with the number of missed records.
func Logger(to *slog.Logger) *slog.Logger {
	if to == nil {
		to = slog.Default()
	}
	if _, done := to.Handler().(guardedHandler); done {
		return to
	}
	return slog.New(guardedHandler{to.Handler(), &logging{}})
}

// logging is the state that loggers over one handler share.
type logging struct {
	guest  Guest
	missed atomic.Int64 // records
}

type guardedHandler struct {
	slog.Handler
	of *logging
}

func (h guardedHandler) Enabled(ctx context.Context, l slog.Level) bool {
	enabled, err := Ask(&h.of.guest, Patience, func() bool { return h.Handler.Enabled(ctx, l) })
	return enabled || err != nil && l >= slog.LevelInfo // Handle counts the missed records
}

func (h guardedHandler) Handle(ctx context.Context, r slog.Record) error {
	missed := h.of.missed.Swap(0)
	handled, err := Ask(&h.of.guest, Patience, func() error {
		if missed > 0 {
			slog.New(h.Handler).WarnContext(ctx, "edda: the log lost records", "missed", missed)
		}
		return h.Handler.Handle(ctx, r)
	})
	if err != nil {
		h.of.missed.Add(missed + 1)
	}
	return errors.Join(handled, err)
}

func (h guardedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func() slog.Handler { return h.Handler.WithAttrs(attrs) })
}

func (h guardedHandler) WithGroup(name string) slog.Handler {
	return h.with(func() slog.Handler { return h.Handler.WithGroup(name) })
}

// with returns the handler that f makes, or h if f fails.
func (h guardedHandler) with(f func() slog.Handler) slog.Handler {
	if made, err := Ask(&h.of.guest, Patience, f); err == nil && made != nil {
		h.Handler = made
	}
	return h
}
