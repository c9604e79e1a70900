package dispatch

import (
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/faultproxy"
)

// side is a running server. Its statements are counted.
type side struct {
	*Engine
	proxy *faultproxy.Proxy
	stop  func()
}

// side starts a server with connections of its own.
func (w *loopsWorld) side(name string) *side {
	w.t.Helper()
	const often = 20 * time.Millisecond
	p := w.behindProxy()
	s := w.schedulerOver(p.pool, func(o *Options) {
		o.Lease.Holder, o.Evaluate, o.Dispatch, o.Reconcile, o.Clean = name, often, often, often, often
		o.Lease.Lease, o.Lease.Renew, o.Lease.Acquire = 2*time.Second, 500*time.Millisecond, 200*time.Millisecond
	})
	return &side{s, p.proxy, w.run(s)}
}

// epoch returns the number of the current term, 0 if there is no term.
func (w *loopsWorld) epoch() int64 {
	w.t.Helper()
	return int64(w.count(`SELECT coalesce(max(epoch), 0)::int FROM :schema.lease WHERE name = $1
		AND holder IS NOT NULL AND expires > clock_timestamp()`, LeaseName))
}

func holderOf(epoch int64, servers []*side) *side {
	for _, s := range servers {
		if t, ok := s.keeper.Holding(); ok && t.Epoch == epoch {
			return s
		}
	}
	return nil
}

// share watches servers through one term: the holder evaluates and reconciles and the others do neither, and all of
// them dispatch and clean up. It returns the holder, and its term.
func (w *loopsWorld) share(servers ...*side) (holder *side, epoch int64) {
	w.t.Helper()
	for {
		w.await("somebody has the lease", func() bool {
			epoch = w.epoch()
			holder = holderOf(epoch, servers)
			return holder != nil
		})
		for _, s := range servers {
			s.proxy.Set() // starts counting again
		}
		w.await("everybody has done something", func() bool {
			busy := true
			for _, s := range servers {
				did := s.proxy.Seen()
				busy = busy && did["pick"] > 0 && did["clean"] > 0
			}
			did := holder.proxy.Seen()
			return w.epoch() != epoch || did["load"] > 2 && did["lost"] > 2 && (busy || did["load"] > 200)
		})
		did := map[*side]map[string]int{}
		for _, s := range servers {
			did[s] = s.proxy.Seen()
		}
		if w.epoch() != epoch {
			continue // the machine was too busy for a renewal
		}
		for _, s := range servers {
			if did[s]["pick"] == 0 || did[s]["clean"] == 0 {
				w.t.Errorf("%s dispatches or cleans up nothing: %v", s.core.options.Lease.Holder, did[s])
			}
			if s != holder && did[s]["try_lock"]+did[s]["load"]+did[s]["reap"]+did[s]["lost"]+did[s]["remind"] > 0 {
				w.t.Errorf("%s evaluates or reconciles, and %s has the lease: %v", s.core.options.Lease.Holder,
					holder.core.options.Lease.Holder, did[s])
			}
		}
		return holder, epoch
	}
}

// Of two servers the holder of the lease evaluates and reconciles, however it lost and acquired the lease. Both
// dispatch and clean up.
func TestOnlyTheHolderLooksForWhatIsDue(t *testing.T) {
	for name, lose := range map[string]func(w *loopsWorld, holder *side) (back func()){
		"it stops": func(_ *loopsWorld, holder *side) func() {
			holder.stop()
			return nil
		},
		"it is cut off for ever": func(_ *loopsWorld, holder *side) func() {
			_ = holder.proxy.Close()
			return nil
		},
		"it is asked to resign": func(w *loopsWorld, holder *side) func() {
			if ok, err := holder.core.leases.Resign(w.t.Context(), w.owner, LeaseName); !ok || err != nil {
				w.t.Errorf("nobody was asked: %v", err)
			}
			return func() {}
		},
		"it stands still for a while": (*loopsWorld).freeze,
	} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			a, b := w.side("a"), w.side("b")
			first, epoch := w.share(a, b)
			second := a
			if first == a {
				second = b
			}
			back := lose(w, first)
			w.await("the next term begins", func() bool { return w.epoch() > epoch })
			if back == nil {
				w.share(second)
				return
			}
			back()
			w.share(a, b)
		})
	}
}

// freeze holds back the statements of a server to the database until back is called. It cuts off a cycle that is in
// its transaction: a proxy that holds a statement back keeps the database from ending the transaction of a silent
// client.
func (w *loopsWorld) freeze(s *side) (back func()) {
	w.t.Helper()
	thaw := make(chan struct{})
	back = sync.OnceFunc(func() { close(thaw) })
	w.t.Cleanup(back) // before the server is stopped, which waits for it
	hold := faultproxy.Pause(func() { <-thaw })
	s.proxy.Set(
		faultproxy.Fault{Statement: "open", Do: hold}, faultproxy.Fault{Statement: "acquire", Do: hold},
		faultproxy.Fault{Statement: "renew", Do: hold},
		faultproxy.Fault{Statement: "release", Do: faultproxy.Swallow}, // of a savepoint in a cycle, and of the lease
	)
	return back
}
