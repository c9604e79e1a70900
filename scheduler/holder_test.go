package scheduler

import (
	"sync/atomic"
	"testing"
	"time"
)

// Two schedulers run. The one with the lease evaluates and reconciles, and the other does neither until the lease is its own.
func TestOnlyTheHolderEvaluatesAndReconciles(t *testing.T) {
	w := loopsOpen(t)
	var cycles [2]atomic.Int64
	server := func(n int) *Scheduler {
		s := w.scheduler(func(o *Options) {
			o.Evaluate, o.Reconcile, o.LeaseAcquire = 5*time.Millisecond, 5*time.Millisecond, 20*time.Millisecond
		})
		s.guards.loaded = func() { cycles[n].Add(1) }
		return s
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		w.await(what, func() bool { <-time.After(time.Millisecond); return ok() })
	}
	swept := func(s *Scheduler) time.Time { return s.Leases()[0].Swept.Ended }
	first, second := server(0), server(1)
	stop := w.run(first)
	await("the first evaluates and reconciles", func() bool { return cycles[0].Load() > 0 && !swept(first).IsZero() })
	w.run(second)
	await("the second stands by", func() bool { return second.Leases()[0].Epoch == 1 })
	before, last := cycles[0].Load(), swept(first)
	await("the first goes on", func() bool {
		return cycles[0].Load() >= before+20 && swept(first).After(last.Add(100*time.Millisecond))
	})
	if n := cycles[1].Load(); n > 0 || !swept(second).IsZero() {
		t.Errorf("beside the holder the other evaluated %d times, and reconciled at %v", n, swept(second))
	}
	stop()
	await("the second evaluates and reconciles", func() bool { return cycles[1].Load() > 0 && !swept(second).IsZero() })
	if l := second.Leases()[0]; l.Epoch != 2 || !l.Holding {
		t.Errorf("the second works, and its lease stands at %+v", l)
	}
}

func TestSingletonRenewsEveryTenSeconds(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]SingletonOptions{
		0:               {TTL: 30 * time.Second, Renew: 10 * time.Second},
		time.Minute:     {TTL: time.Minute, Renew: 10 * time.Second},
		9 * time.Second: {TTL: 9 * time.Second, Renew: 3 * time.Second},
	} {
		if o := (SingletonOptions{TTL: ttl}).withDefaults(); o.TTL != want.TTL || o.Renew != want.Renew {
			t.Errorf("a TTL of %v becomes %v, renewed every %v; want %v and %v", ttl, o.TTL, o.Renew, want.TTL, want.Renew)
		}
	}
}
