package firing

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/lease"
)

// Options of an Engine. Every zero is a default, and a negative number is an error. scheduler.Options says what each
// field means.
type Options struct {
	Evaluate, Dispatch, Reconcile, Clean time.Duration

	MaxActive             int
	MaxConcurrentDispatch int
	MaxDispatchAttempts   int
	Retention             time.Duration
	OrphanGrace           time.Duration
	LostAfter             time.Duration

	Lease    lease.Options // its Logger is the Engine's
	PollOnly bool
	Logger   *slog.Logger // nil is slog.Default()

	// Heard gets each notification that is not for the Engine, and "" when some may have been missed. nil is nobody.
	Heard func(payload string)

	// NoLease and NoLock take a guard away, for tests that show what is left without it.
	NoLease, NoLock bool
}

const (
	defaultPoll     = time.Second
	mostDispatchers = 100
	longestPoll     = 24 * time.Hour
	longestKept     = 100 * 365 * 24 * time.Hour
)

func (o Options) withDefaults() (Options, error) {
	faults := errors.Join(
		duration("Evaluate", &o.Evaluate, bound{defaultPoll, longestPoll}),
		duration("Dispatch", &o.Dispatch, bound{defaultPoll, longestPoll}),
		duration("Reconcile", &o.Reconcile, bound{time.Minute, longestPoll}),
		duration("Clean", &o.Clean, bound{time.Minute, longestPoll}),
		duration("Retention", &o.Retention, bound{30 * 24 * time.Hour, longestKept}),
		duration("OrphanGrace", &o.OrphanGrace, bound{5 * time.Minute, longestKept}),
		duration("LostAfter", &o.LostAfter, bound{5 * time.Minute, longestKept}),
		number("MaxActive", &o.MaxActive, 0, 1_000_000),
		number("MaxConcurrentDispatch", &o.MaxConcurrentDispatch, 1, mostDispatchers),
		number("MaxDispatchAttempts", &o.MaxDispatchAttempts, 5, 1000),
	)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Heard == nil {
		o.Heard = func(string) {}
	}
	return o, faults
}

type bound struct{ standard, most time.Duration }

func duration(name string, value *time.Duration, s bound) error {
	if *value < 0 || *value > s.most {
		return fmt.Errorf("%s is %v, want 0 (which is %v) to %v", name, *value, s.standard, s.most)
	}
	if *value == 0 {
		*value = s.standard
	}
	return nil
}

func number(name string, value *int, standard, most int) error {
	if *value < 0 || *value > most {
		return fmt.Errorf("%s is %d, want 0 (which is %d) to %d", name, *value, standard, most)
	}
	if *value == 0 {
		*value = standard
	}
	return nil
}
