package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/saga"
)

// Options of a Scheduler. Every zero is a default, and a negative number an error.
type Options struct {
	Schema string     // "" is "edda"
	Owner  string     // whose manifests these are: those of the same owner that are not given to New become orphans
	Groups []Group    // that the manifests may name
	Codec  saga.Codec // of message bodies, as that of the bus; nil is JSON
	Logger *slog.Logger

	Evaluate  time.Duration // how often the database is asked what is due, beside wake-ups; 0 is 1 s
	Dispatch  time.Duration // how often it is asked for runs to dispatch, beside wake-ups; 0 is 1 s
	Reconcile time.Duration // how often it is asked for what was left behind; 0 is 60 s
	Clean     time.Duration // how often old runs are deleted; 0 is 1 min

	// MaxActive bounds the runs of the whole schema that are active at a time; 0 is no bound. Each server counts by
	// itself, before it dispatches a batch of at most 100: so it may be exceeded by as many for each server but one.
	MaxActive int
	// transactions at a time that send messages, a connection of the pool each; 0 is 1, at most 100
	MaxConcurrentDispatch int
	MaxDispatchAttempts   int           // sends that fail in a row before the run is dead; 0 is 5
	Retention             time.Duration // of runs that ended; 0 is 30 days
	OrphanGrace           time.Duration // before an orphan is deleted; 0 is 5 min
	LostAfter             time.Duration // without a sign of life, of handlers that give some; 0 is 5 min

	LeaseTTL     time.Duration // of the lease "scheduler"; 0 is 15 s: who evaluates and dies is followed after it
	LeaseRenew   time.Duration // 0 is 5 s, at most LeaseTTL/3
	LeaseAcquire time.Duration // how often others bid; 0 is 5 s
	Replica      string        // the name of this server, for people who look; "" is that of the host
	PollOnly     bool          // neither LISTEN nor NOTIFY, for PgBouncer in transaction mode
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
	if o.Codec == nil {
		o.Codec = saga.JSON
	}
	return o, faults
}

// lease are the options of the Keeper, which checks them.
func (o Options) lease() lease.Options {
	return lease.Options{TTL: o.LeaseTTL, Renew: o.LeaseRenew, Acquire: o.LeaseAcquire, Holder: o.Replica,
		Logger: o.Logger}
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
