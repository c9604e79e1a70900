package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// soon checks again after a moment.
func soon(ok func() bool) func() bool {
	return func() bool {
		if ok() {
			return true
		}
		<-time.After(5 * time.Millisecond)
		return false
	}
}

// Two servers run all of their loops. The one with the lease evaluates and reconciles; the other does neither before it
// has the lease.
func TestOneOfTwoSchedulersLeads(t *testing.T) {
	w := loopsOpen(t)
	var (
		servers [2]*Engine
		cycles  [2]atomic.Int64
		stops   [2]func()
	)
	for n := range servers {
		servers[n] = w.scheduler(func(o *Options) {
			o.Evaluate, o.Reconcile, o.Lease.Acquire = 5*time.Millisecond, 5*time.Millisecond, 20*time.Millisecond
		})
		servers[n].evaluator.loaded = func() { cycles[n].Add(1) }
		stops[n] = w.run(servers[n])
	}
	leads := func(n int) bool { return cycles[n].Load() > 0 }
	for n, s := range servers {
		w.await("both have bid", soon(func() bool { return leads(n) || s.keeper.Health().Term.Epoch > 0 }))
	}
	w.await("one leads", soon(func() bool { return leads(0) || leads(1) }))
	leader := slices.Index([]bool{leads(0), leads(1)}, true)
	other := 1 - leader
	w.await("twenty cycles and a sweep", soon(func() bool {
		return cycles[leader].Load() >= 20 &&
			servers[leader].sweeper.swept.Load() != nil
	}))
	if n := cycles[other].Load(); n > 0 || servers[other].sweeper.swept.Load() != nil {
		t.Errorf("the server without the lease evaluated %d times, and its last sweep was %+v", n,
			servers[other].sweeper.swept.Load())
	}
	if n := w.count("SELECT count(*) FROM :schema.lease"); n != 1 {
		t.Errorf("there are %d leases, want one for both servers", n)
	}
	stops[leader]()
	w.await(
		"the other server leads",
		soon(func() bool { return leads(other) && servers[other].sweeper.swept.Load() != nil }),
	)
}

// The holder of the lease has died. Until the end of its term the others dispatch and clean up, and evaluate nothing.
// The next holder queues the firings that fell due in between.
func TestGapAfterACrashIsCaughtUp(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(3)
	w.queued("old", 1, 0)
	w.exec("UPDATE :schema.run SET state = 'succeeded', ended = now() - interval '31 days'")
	w.queued("q", 3, 0)
	s := w.scheduler(func(o *Options) {
		o.Evaluate, o.Dispatch, o.Clean, o.Lease.Acquire = 20*time.Millisecond, 20*time.Millisecond,
			20*time.Millisecond,
			20*time.Millisecond
	})
	w.term(s, "dead")
	w.run(s)
	sent := func(n int) func() bool {
		return soon(func() bool { return w.count("SELECT count(*) FROM :schema.sent_message") == n })
	}
	w.await("what was queued is dispatched", sent(3))
	w.await("old runs are deleted", soon(func() bool {
		return w.count("SELECT count(*) FROM :schema.run WHERE "+
			"ended IS NOT NULL") == 0
	}))
	w.store("trigger", "m1")
	w.await("what was triggered is dispatched", sent(4))
	if n := w.count("SELECT count(*) FROM :schema.run WHERE origin = 'schedule'"); n != 0 {
		t.Errorf("%d runs were queued by a server without the lease", n)
	}
	w.exec("UPDATE :schema.lease SET expires = clock_timestamp()")
	w.await("what fell due in the gap is dispatched", sent(7))
	w.onceEach()
}

// A server that evaluates once an hour is notified of a declaration by a different server.
func TestNotificationWakesTheEvaluator(t *testing.T) {
	w := loopsOpen(t)
	w.run(w.scheduler(func(o *Options) { o.Evaluate = time.Hour }))
	var declared []string
	// The first cycle of a term may find the first change, and the cycle at the start of listening the second.
	for n := range 4 {
		declared = append(declared, fmt.Sprint("m", n))
		w.store("declare", declared...)
		w.await(fmt.Sprint(n+1, " are queued"),
			soon(func() bool { return w.count("SELECT count(*) FROM :schema.run") == n+1 }))
	}
}

// A sweep deletes the runs of orphans, and then checks again: a manifest that was declared in between stays.
func TestOrphanThatComesBackDuringASweepStays(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(2)
	w.exec("UPDATE :schema.manifest SET orphaned_at = now() - interval '31 days', live = false")
	s := w.scheduler()
	term := w.term(s, "a")
	once := func(step func(context.Context, pgx.Tx) (int, int, error)) (done int) {
		t.Helper()
		if err := s.core.inTx(t.Context(), term, func(tx pgx.Tx) (err error) {
			done, _, err = step(t.Context(), tx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return done
	}
	once(s.sweeper.emptyOrphans)
	w.exec("UPDATE :schema.manifest SET orphaned_at = NULL, live = true WHERE name = 'm1'")
	if n := once(s.sweeper.dropOrphans); n != 1 {
		t.Errorf("%d manifests were deleted, want m2", n)
	}
	if got := w.text("SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM :schema.manifest"); got != "m1" {
		t.Errorf("left: %q, want m1", got)
	}
}

func TestTimesOfTheReconciler(t *testing.T) {
	t.Parallel()
	o, err := Options{}.withDefaults()
	if err != nil || o.Reconcile != time.Minute || o.OrphanGrace != 300*time.Second {
		t.Errorf("it reconciles every %v, and an orphan has %v (%v); want 60s and 300s", o.Reconcile, o.OrphanGrace,
			err)
	}
}
