package bus

import (
	"context"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/leased"
	"github.com/edda-go/edda/internal/pg"
)

func (e *Endpoint) leasedNeeds(pool *pg.Pool) leased.Needs {
	b, o := e.bus, &e.options
	return leased.Needs{
		Terms: leased.Terms{
			To: e.recipient, Pool: pool, Breaker: e.breaker, Alarm: e.alarm, Hub: b.hub,
			Options: leased.Options{
				Concurrency: o.Concurrency, BatchMax: o.BatchMax, BatchBytes: o.BatchBytes, MaxCrashes: o.MaxCrashes,
				StepTimeout: o.StepTimeout, Lease: o.Lease, Poll: o.Poll, Drain: o.Drain,
				Ordered: o.Ordered != Unordered, Strict: o.Ordered == Strict,
			},
			Session: b.session,
			Limit: leased.Limit{Store: b.limits, Set: &e.permits.limited, Changed: e.permits.changed,
				Notifies: b.wakeup == Notify},
		},
		Settings: e.settings.Follower, Workers: e.settings.workers, Outage: b.outage, Emit: b.emit,
		Finished: func(ctx context.Context, done *delivery.Effects) (failing bool) {
			e.after(ctx, done)
			r := reportOf(done, nil)
			e.pace(r)
			return r.done == 0 && r.failures > 0
		},
	}
}
