package scheduler

import (
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/engine/firing"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/saga"
)

// Options of a Scheduler. Every zero is a default, and a negative number is an error.
type Options struct {
	Owner  string     // of the manifests: the name of the program, the same in all its processes and releases
	Groups []Group    // that the manifests may name
	Codec  saga.Codec // of message bodies, as that of the bus; nil is JSON
	Logger *slog.Logger

	Evaluate  time.Duration // how often the database is asked what is due, beside wake-ups; 0 is 1 s
	Dispatch  time.Duration // how often it is asked for runs to dispatch, beside wake-ups; 0 is 1 s
	Reconcile time.Duration // how often it is asked for what was left behind, and manifests are declared; 0 is 60 s
	Clean     time.Duration // how often old runs are deleted; 0 is 1 min

	// MaxActive bounds the runs of the whole schema that are active at a time; 0 is no bound. Each server counts by
	// itself before it dispatches a batch of at most 100, so every server after the first may exceed it by 100.
	MaxActive int
	// transactions at a time that send messages, each with a connection of the pool; 0 is 1, at most 100
	MaxConcurrentDispatch int
	MaxDispatchAttempts   int           // sends that fail in a row before the run is dead; 0 is 5
	Retention             time.Duration // of runs that ended, and of orphans; 0 is 30 days
	OrphanGrace           time.Duration // until a manifest that no running program declares is an orphan; 0 is 5 min
	LostAfter             time.Duration // without a sign of life, of handlers that give some; 0 is 5 min

	// how long another server waits for one that evaluates and died, and how long the manifests of a program that died
	// count as declared by one that runs; 0 is the default lease
	Lease        time.Duration
	LeaseRenew   time.Duration // 0 is 5 s, at most Lease/3
	LeaseAcquire time.Duration // how often others bid; 0 is 5 s
	Holder       string        // this server in the table lease; "" is $EDDA_HOLDER, else the name of the host
	PollOnly     bool          // neither LISTEN nor NOTIFY, for PgBouncer in transaction mode
}

// engine are the options of the loops. heard gets the notifications that are not for them.
func (o Options) engine(heard func(payload string)) firing.Options {
	return firing.Options{
		Evaluate: o.Evaluate, Dispatch: o.Dispatch, Reconcile: o.Reconcile, Clean: o.Clean,
		MaxActive: o.MaxActive, MaxConcurrentDispatch: o.MaxConcurrentDispatch,
		MaxDispatchAttempts: o.MaxDispatchAttempts,
		Retention:           o.Retention, OrphanGrace: o.OrphanGrace, LostAfter: o.LostAfter,
		Lease:    lease.Options{Lease: o.Lease, Renew: o.LeaseRenew, Acquire: o.LeaseAcquire, Holder: o.Holder},
		PollOnly: o.PollOnly, Logger: o.Logger, Heard: heard,
	}
}
