package dispatch

import (
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/store/lease"
)

// Options are the options of an Engine. Every zero is a default, and a negative number is an error. scheduler.Options
// documents each field.
type Options struct {
	Evaluate, Dispatch, Reconcile, Clean time.Duration

	MaxActive             int
	MaxConcurrentDispatch int
	MaxDispatchAttempts   int
	Retention             time.Duration
	OrphanGrace           time.Duration
	LostAfter             time.Duration

	Lease    lease.Options // its Logger is replaced by the Engine's
	PollOnly bool
	Logger   *slog.Logger // nil is slog.Default()

	// Heard is called with each notification that is not for the Engine, and with "" if some may have been missed.
	// nil ignores them.
	Heard func(payload string)
}

const (
	mostDispatchers = 100
	longestPoll     = 24 * time.Hour
	longestKept     = 100 * 365 * 24 * time.Hour
)

// Defaults that package scheduler uses too.
const (
	Reconcile   = time.Minute
	OrphanGrace = 5 * time.Minute
)

func (o Options) withDefaults() (Options, error) {
	var f option.Faults
	f.Duration("Evaluate", &o.Evaluate, time.Second, 0, longestPoll)
	f.Duration("Dispatch", &o.Dispatch, time.Second, 0, longestPoll)
	f.Duration("Reconcile", &o.Reconcile, Reconcile, 0, longestPoll)
	f.Duration("Clean", &o.Clean, time.Minute, 0, longestPoll)
	f.Duration("Retention", &o.Retention, 30*24*time.Hour, 0, longestKept)
	f.Duration("OrphanGrace", &o.OrphanGrace, OrphanGrace, 0, longestKept)
	f.Duration("LostAfter", &o.LostAfter, 5*time.Minute, 0, longestKept)
	f.Int("MaxActive", &o.MaxActive, 0, 0, 1_000_000)
	f.Int("MaxConcurrentDispatch", &o.MaxConcurrentDispatch, 1, 0, mostDispatchers)
	f.Int("MaxDispatchAttempts", &o.MaxDispatchAttempts, 5, 0, 1000)
	o.Logger = handlers.Logger(o.Logger)
	if o.Heard == nil {
		o.Heard = func(string) {}
	}
	return o, f.Err()
}
