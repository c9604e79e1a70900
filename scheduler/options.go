package scheduler

import (
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/saga"
)

// Options configure a Scheduler. Every zero is a default, and a negative number is an error.
type Options struct {
	Owner  string     // of the manifests: the name of the program, the same in all its processes and releases
	Groups []Group    // groups that the manifests may name
	Codec  saga.Codec // encodes message bodies: use the codec of the bus; nil is JSON
	Logger *slog.Logger

	Evaluate  time.Duration // how often the database is polled for due manifests, besides wake-ups; 0 is 1 s
	Dispatch  time.Duration // how often it is polled for runs to dispatch, besides wake-ups; 0 is 1 s
	Reconcile time.Duration // how often lost attempts are sought and manifests declared again; 0 is 60 s
	Clean     time.Duration // how often old runs are deleted; 0 is 1 min

	// MaxActive limits the active runs of the whole schema; 0 is no limit. Each server counts before it dispatches a
	// batch of at most 100 runs, so every server after the first may exceed the limit by 100.
	MaxActive int
	// concurrent transactions that send messages, each with a connection of the pool; 0 is 1, at most 100
	MaxConcurrentDispatch int
	MaxDispatchAttempts   int           // failed sends in a row until the run is dead; 0 is 5
	Retention             time.Duration // of ended runs, and of orphans; 0 is 30 days
	OrphanGrace           time.Duration // until a manifest that no running program declares is an orphan; 0 is 5 min
	LostAfter             time.Duration // silence after which an attempt is lost, if it has beaten; 0 is 5 min

	// after a crash: how long until a second server takes over the evaluation, and how long the manifests of the
	// crashed program still count as declared by a running one; 0 is 15 s
	Lease        time.Duration
	LeaseRenew   time.Duration // how often the holder renews, at most Lease/3; 0 is 5 s, or Lease/3 if shorter
	LeaseAcquire time.Duration // how often other servers bid; 0 is 5 s, or Lease/3 if shorter
	Holder       string        // name of this server in the table lease; "" is $EDDA_HOLDER, else the name of the host
	PollOnly     bool          // neither LISTEN nor NOTIFY, for PgBouncer in transaction mode
}

// engine returns the options of the loops. heard receives the notifications that are not for them.
func (o Options) engine(heard func(payload string)) dispatch.Options {
	return dispatch.Options{
		Evaluate: o.Evaluate, Dispatch: o.Dispatch, Reconcile: o.Reconcile, Clean: o.Clean,
		MaxActive: o.MaxActive, MaxConcurrentDispatch: o.MaxConcurrentDispatch,
		MaxDispatchAttempts: o.MaxDispatchAttempts,
		Retention:           o.Retention, OrphanGrace: o.OrphanGrace, LostAfter: o.LostAfter,
		Lease:    lease.Options{Lease: o.Lease, Renew: o.LeaseRenew, Acquire: o.LeaseAcquire, Holder: o.Holder},
		PollOnly: o.PollOnly, Logger: o.Logger, Heard: heard,
	}
}
