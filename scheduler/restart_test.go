package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
)

type longWork struct{ N int }

func (longWork) Kind() string { return "long.work" }

// restartWorld has servers, each with a bus, an endpoint whose handlers take long, and a scheduler.
type restartWorld struct {
	*singleWorld
	begun chan struct{} // receives a value for each handler that begins
	let   chan struct{} // closed: handlers may end
	calls atomic.Int64
}

const longRuns = 4

// server starts a server, which runs until stop.
func (w *restartWorld) server(name string) (stop func()) {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w, nil))
	b, err := bus.New(w.pool, bus.Options{Schema: w.schema.Name(), Logger: log, AutoInstall: true,
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := bus.NewEndpoint(b, "long", bus.EndpointOptions{Concurrency: longRuns},
		bus.Handle(func(_ *bus.Context, _ longWork) error {
			w.calls.Add(1)
			w.begun <- struct{}{}
			<-w.let
			return nil
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	var manifests []scheduler.Manifest
	for n := range longRuns {
		manifests = append(manifests, scheduler.Manifest{
			Name: fmt.Sprintf("long/%d", n), When: scheduler.Every(time.Hour), Message: longWork{N: n}, Retries: -1,
			Timeout: time.Hour,
		})
	}
	s, err := scheduler.New(b, scheduler.Options{
		Owner: "shop", Holder: name, Logger: log, PollOnly: pgdev.Pooled(), Evaluate: 50 * time.Millisecond,
		Dispatch:  50 * time.Millisecond,
		Reconcile: 50 * time.Millisecond, Lease: 15 * time.Second, LeaseRenew: 5 * time.Second,
		LeaseAcquire: 100 * time.Millisecond,
	}, manifests...)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Singleton("rates", func(t scheduler.Term) error {
		w.note("rates", "begins", t.Epoch())
		<-t.Done()
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	if err := e.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Run(ctx); err != nil {
			w.t.Errorf("scheduler of %s: %v", name, err)
		}
	})
	all.Go(func() {
		if err := e.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("endpoint of %s: %v", name, err)
		}
	})
	w.await(name+" took the lease", func() bool {
		return w.number("SELECT count(*) FROM :schema.lease WHERE name = 'scheduler' AND holder IS NOT NULL") == 1
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); all.Wait() }) }
	w.t.Cleanup(stop)
	return stop
}

func (w *restartWorld) number(sql string) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(context.WithoutCancel(w.t.Context()), w.schema.Render(sql)).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *restartWorld) await(what string, ok func() bool) {
	w.t.Helper()
	for began := time.Now(); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Since(began) > pgdev.Patience(25*time.Second) {
			w.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// Servers start, evaluate, sweep and end while runs of other servers take long. No run ends because of that: a run is
// lost if its handler gives no sign of life, and not because a scheduler has started.
//
// Row X14.
func TestRollingRestartFailsNoRun(t *testing.T) {
	w := &restartWorld{singleWorld: singleOpen(t), begun: make(chan struct{}, 100), let: make(chan struct{})}
	w.pool = pgtest.Pool(t) // installs
	release := sync.OnceFunc(func() { close(w.let) })
	defer release()
	stops := []func(){w.server("server-0")}
	for range longRuns {
		<-w.begun
	}
	for n := 1; n < 3; n++ {
		stops = append(stops, w.server(fmt.Sprintf("server-%d", n)))
	}
	epoch := func() int { return w.number("SELECT epoch FROM :schema.lease WHERE name = 'scheduler'") }
	for round := range 2 {
		for n := 1; n < 3; n++ {
			stops[n]()
			stops[n] = w.server(fmt.Sprintf("server-%d", n))
			leases, before := w.leases, epoch()
			if err := leases.Resign(t.Context(), scheduler.LeaseName); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			w.await("another server sweeps", func() bool { return epoch() > before })
		}
	}
	active := w.number("SELECT count(*) FROM :schema.run WHERE state = 'active' AND attempt = 1")
	if active != longRuns {
		t.Errorf("%d of %d runs go on in their first attempt", active, longRuns)
	}
	release()
	w.await("all runs have succeeded", func() bool {
		return w.number("SELECT count(*) FROM :schema.run WHERE state "+
			"= 'succeeded'") == longRuns
	})
	other := w.number("SELECT count(*) FROM :schema.run_attempt WHERE outcome IS DISTINCT FROM 'succeeded'")
	if other != 0 || w.calls.Load() != longRuns {
		t.Errorf("%d attempts ended otherwise, and %d handlers ran, want 0 and %d", other, w.calls.Load(), longRuns)
	}
	stops[0]() // and now the first server
	stops[0] = w.server("server-0")
	if _, ok := w.seen("rates", "begins", 1); !ok {
		t.Error("the schedulers' Singleton never ran")
	}
	for _, stop := range stops {
		stop()
	}
	if runs := w.number("SELECT count(*) FROM :schema.run"); runs != longRuns {
		t.Errorf("%d runs, want one of each manifest", runs)
	}
}

func TestSchedulerTellsOfItsLeases(t *testing.T) {
	w := singleOpen(t)
	b, err := bus.New(w.pool, bus.Options{Schema: w.schema.Name(), Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scheduler.New(b, scheduler.Options{PollOnly: pgdev.Pooled(), Reconcile: time.Millisecond,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	run := w.holder("a", nil)
	if err := s.Singleton("rates", run); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"twice": s.Singleton("rates", run), "no name": s.Singleton("Rates", run),
		"no function": s.Singleton("x", nil)} {
		if err == nil {
			t.Errorf("a Singleton is registered: %s", what)
		}
	}
	if _, more := s.Connections(); more != 3 {
		t.Errorf("%d connections, want one for each lease and one that listens", more)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	w.find("a", "begins", 1)
	for began := time.Now(); time.Since(began) < pgdev.Patience(20*time.Second); <-time.After(10 * time.Millisecond) {
		if l := s.Leases(); len(l) == 2 && l[0].Holding && l[1].Holding && l[0].Swept.Every > 0 {
			break
		}
	}
	l := s.Leases()
	if l[0].Lease != "scheduler" || !l[0].Holding || l[0].Swept.Ended.IsZero() || l[1].Lease != "singleton/rates" ||
		!l[1].Holding || l[1].Epoch != 1 {
		t.Errorf("%+v", l)
	}
	if d, err := s.Depth(t.Context()); err != nil || d != (scheduler.Depth{}) {
		t.Errorf("nothing waits: %+v, %v", d, err)
	}
	if err := s.Singleton("late", run); err == nil {
		t.Error("a Singleton is registered while the scheduler runs")
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	w.find("a", "ends", 1)
	if s.Leases()[1].Holding {
		t.Error("it holds a lease after its end")
	}
}
