package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// neverPolls sets options for a server that finds nothing by itself: its polls are a day apart.
func neverPolls(o *Options) {
	o.Evaluate, o.Dispatch, o.Reconcile, o.Clean = longestPoll, longestPoll, longestPoll, longestPoll
}

// loops runs loops of a scheduler until the test ends.
func (w *loopsWorld) loops(all ...func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	for _, loop := range all {
		running.Go(func() {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
		})
	}
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

// A stored change wakes the server that evaluates, and its cycle wakes the servers that dispatch. No server polls
// here, and each of the two servers runs a single loop, so each step is triggered by a notification. A loop's first
// pass may also find the first change.
func TestAChangeWakesTheHolder(t *testing.T) {
	for name, begin := range map[string]func(w *loopsWorld) *Engine{
		"of two servers": func(w *loopsWorld) *Engine {
			holder, other := w.scheduler(neverPolls), w.scheduler(neverPolls)
			w.loops(holder.listen, func(ctx context.Context) error { return holder.evaluator.run(ctx, noTerm) },
				other.listen, other.dispatcher.run)
			return holder
		},
		"of one": func(w *loopsWorld) *Engine {
			s := w.scheduler(neverPolls)
			w.run(s)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			holder := begin(w)
			for n := range 4 {
				holder.core.ringing.forget() // two calls within notifyGap become one
				name := fmt.Sprint("m", n)
				w.store("put", name)
				w.await(name+" is evaluated and dispatched",
					func() bool { return w.count("SELECT count(*) FROM :schema.sent_message") == 2*n+1 })
				w.store("trigger", name)
				w.await("its trigger is dispatched",
					func() bool { return w.count("SELECT count(*) FROM :schema.sent_message") == 2*n+2 })
			}
			w.onceEach()
		})
	}
}

// looks counts how often a server has begun each loop, by the first statement that belongs to the loop.
func looks(p *proxied) map[string]int {
	seen, counted := p.proxy.Seen(), map[string]int{}
	for loop, statement := range map[string]string{"evaluate": "load", "dispatch": "promote", "reconcile": "lost",
		"clean up": "clean"} {
		counted[loop] = seen[statement]
	}
	return counted
}

// While one server begins each loop twenty times, a server whose intervals are a day begins it at most once, at its
// start.
func TestEvaluateIsAskedAtItsInterval(t *testing.T) {
	w := loopsOpen(t)
	often, seldom := w.behindProxy(), w.behindProxy()
	short := func(o *Options) {
		o.Evaluate, o.Dispatch, o.Reconcile, o.Clean = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond,
			20*time.Millisecond
	}
	for p, intervals := range map[*proxied]func(*Options){often: short, seldom: neverPolls} {
		s := w.schedulerOver(p.pool, intervals, func(o *Options) { o.PollOnly = true })
		s.unlocked()
		w.runs(s.dispatcher.run, s.cleaner.run, s.unled)
	}
	for _, loop := range []string{"evaluate", "dispatch", "reconcile", "clean up"} {
		w.await(loop+" has looked twenty times", func() bool { return looks(often)[loop] >= 20 })
	}
	w.await("the other server has begun", func() bool {
		return looks(seldom)["evaluate"] > 0 &&
			looks(seldom)["dispatch"] > 0
	})
	want := map[string]int{"evaluate": 1, "dispatch": 1, "reconcile": 0, "clean up": 0}
	if got := looks(seldom); !maps.Equal(got, want) {
		t.Errorf("a server whose intervals are a day has looked %v times, want %v", got, want)
	}
}

// A cycle that finds the lock taken has tried the lock, and run no other statement. The next one comes after the
// interval.
func TestSkippedCycleCostsOneTry(t *testing.T) {
	w := loopsOpen(t)
	p := w.behindProxy()
	first, second := w.scheduler(), w.schedulerOver(p.pool, func(o *Options) { o.Evaluate = time.Hour })
	w.cycle(second) // connects
	first.evaluator.loaded = func() {
		p.proxy.Set()
		c := w.cycle(second)
		if wait := second.evaluator.untilDue(t.Context(), c); !c.elsewhere || wait != time.Hour {
			t.Errorf("%+v, and the next cycle is after %v, want one elsewhere and an hour", c, wait)
		}
		if seen, want := p.proxy.Seen(), map[string]int{"begin": 1, "open": 1, "try_lock": 1,
			"rollback": 1}; !maps.Equal(seen, want) {
			t.Errorf("a skipped cycle has cost %v, want %v", seen, want)
		}
	}
	w.cycle(first)
}

// The limits and settings of the loops end with their transactions, and so do their locks. So a pooler may give the
// session to any client.
func TestLoopsLeaveTheirSessionAsItWas(t *testing.T) {
	w := loopsOpen(t)
	config := w.pool.Config()
	config.MaxConns = 1
	pool := w.poolOf(config)
	session := func() []string {
		rows, err := pool.Query(t.Context(), `SELECT name || ' = ' || setting FROM pg_settings
			WHERE name NOT LIKE 'plpgsql.%'
			UNION ALL SELECT 'process = ' || pg_backend_pid()
			UNION ALL SELECT 'advisory locks = ' || count(*) FROM pg_locks WHERE pid = pg_backend_pid()
			AND locktype = 'advisory' ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	before := session()
	s := w.schedulerOver(pool, func(o *Options) { o.MaxActive = 100 })
	w.hourlies(2)
	w.queued("strict", 1, w.group("g", 1, true, 0))
	w.queued("refused", 1, 0)
	w.exec("UPDATE :schema.manifest SET kind = 'unknown' WHERE name = 'refused'")
	w.exec("ALTER TABLE :schema.sent_message ADD CHECK (kind <> 'unknown')")
	term := w.term(s, "a")
	for _, loop := range []struct {
		name string
		once func() error
	}{
		{"evaluate", func() error { _, err := s.evaluator.cycle(t.Context(), term); return err }},
		{"dispatch", func() error { _, err := s.dispatcher.pass(t.Context()); return err }},
		{"reconcile", func() error { return s.sweeper.sweep(t.Context(), term) }},
		{"clean up", func() error { return s.cleaner.cleanOnce(t.Context()) }},
	} {
		if err := loop.once(); err != nil {
			t.Fatal(loop.name, err)
		}
		if diff := cmp.Diff(before, session()); diff != "" {
			t.Fatalf("%s left its session otherwise (-before +after):\n%s", loop.name, diff)
		}
	}
	if got := w.states("m1") + ", " + w.states("refused"); got != "schedule active 1, manual waiting 0" {
		t.Errorf("m1 and refused: %s", got)
	}
}

// Operators and the pages rely on the defaults: the values in force if no value is set.
func TestDefaultsByTheirNumbers(t *testing.T) {
	t.Parallel()
	o, err := (Options{Logger: slog.New(slog.DiscardHandler)}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	for what, n := range map[string]struct{ got, want float64 }{
		"Evaluate":              {seconds(o.Evaluate), 1},
		"Dispatch":              {seconds(o.Dispatch), 1},
		"Reconcile":             {seconds(o.Reconcile), 60},
		"Clean":                 {seconds(o.Clean), 60},
		"Retention":             {seconds(o.Retention), 30 * 24 * 3600},
		"OrphanGrace":           {seconds(o.OrphanGrace), 300},
		"LostAfter":             {seconds(o.LostAfter), 300},
		"MaxActive":             {float64(o.MaxActive), 0},
		"MaxConcurrentDispatch": {float64(o.MaxConcurrentDispatch), 1},
		"MaxDispatchAttempts":   {float64(o.MaxDispatchAttempts), 5},
		"runs of a pass":        {batchRuns, 100},
		"runs of a transaction": {mostTogether, 50},
		"sending before commit": {seconds(sendFor), 1},
		"a Sender that hangs":   {seconds(dispatchMost), 90},
		"the most dispatchers":  {mostDispatchers, 100},
		"between notifications": {seconds(notifyGap), 0.05},
		"after a queued cycle":  {seconds(coalesce), 0.02},
		"for a locked manifest": {seconds(lockedPause), 0.02},
		"for a bad manifest":    {seconds(backoffFor), 60},
		"rows of a clean-up":    {cleanRows, 1000},
		"statements of one":     {cleanMost, 100},
	} {
		if n.got != n.want {
			t.Errorf("%s: %v, want %v", what, n.got, n.want)
		}
	}
	if want := (limits{statement: "10s", lock: "2s", idle: "10s"}); cycleLimits != want {
		t.Errorf("a cycle is bounded by %+v, want %+v", cycleLimits, want)
	}
	if want := (limits{statement: "30s", lock: "2s", idle: "60s"}); dispatchLimits != want {
		t.Errorf("a dispatch is bounded by %+v, want %+v", dispatchLimits, want)
	}
}

// A server runs all loops: the test above starts them one by one.
func TestServerRunsAllItsLoops(t *testing.T) {
	w := loopsOpen(t)
	p := w.behindProxy()
	w.run(w.schedulerOver(p.pool, func(o *Options) {
		o.Evaluate, o.Dispatch, o.Reconcile, o.Clean = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond,
			20*time.Millisecond
		o.PollOnly = true
	}))
	for _, loop := range []string{"evaluate", "dispatch", "reconcile", "clean up"} {
		w.await(loop+" has looked", func() bool { return looks(p)[loop] > 0 })
	}
}

// Each dispatcher has a connection, and the other loops share one more.
func TestPoolHasAConnectionToSpare(t *testing.T) {
	w := loopsOpen(t)
	config := w.pool.Config()
	config.MaxConns = 3
	pool := w.poolOf(config)
	for dispatchers, fits := range map[int]bool{2: true, 3: false} {
		s := w.schedulerOver(pool, func(o *Options) { o.MaxConcurrentDispatch, o.PollOnly = dispatchers, true })
		if err := s.Check(t.Context()); (err == nil) != fits {
			t.Errorf("%d dispatchers and a pool of 3 connections: %v", dispatchers, err)
		}
	}
}

func TestAManifestIsPassedOverForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		b.add(7)
		_ = run.Sleep(t.Context(), 59*time.Second)
		b.add(8)
		if list := b.list(); len(list) != 2 {
			t.Errorf("after 59 s %v are passed over, want 7 and 8", list)
		}
		_ = run.Sleep(t.Context(), 2*time.Second)
		if list := b.list(); len(list) != 1 || list[0] != 8 {
			t.Errorf("after 61 s %v are passed over, want 8", list)
		}
	})
}
