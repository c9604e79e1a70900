package bus_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// counters returns the counters of one saga of an endpoint.
func (w *world) counters(endpoint, name string) operate.SagaCounters {
	w.t.Helper()
	all, err := w.operator().Endpoints().Counters(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(c operate.SagaCounters) bool { return c.Endpoint == endpoint && c.Saga == name })
	if at < 0 {
		w.t.Fatalf("no counters of saga %q in endpoint %s: %+v", name, endpoint, all)
	}
	return all[at]
}

func (w *world) parsed() pg.Schema {
	w.t.Helper()
	schema, err := pg.ParseSchema(w.schema)
	if err != nil {
		w.t.Fatal(err)
	}
	return schema
}

// The counters separate three times: the time of handlers, the time of their batches, and the time of messages from
// their send, or from their due time.
func TestCountersTellHandlersFromTheWayToThem(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	const slow, write = 30 * time.Millisecond, 300 * time.Millisecond
	def := tallies(saga.Pessimistic, func(saga.Message) { <-time.After(slow) })
	w.install("tallies", bus.Saga(def))
	queue := w.queue("tallies")
	w.send(add{Key: "a", N: 1})
	w.exec(`UPDATE ` + queue + ` SET sent = sent - interval '3 hours', due = due - interval '1 hour'`)
	w.send(add{Key: "b", N: 1})
	w.exec(`UPDATE ` + queue + ` SET sent = sent - interval '1 hour', due = due - interval '3 hours' WHERE sent > ` +
		`now() - interval '1 hour'`)
	w.exec(`CREATE FUNCTION edda.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$`)
	w.exec(`CREATE TRIGGER dawdle BEFORE DELETE ON ` + queue + ` FOR EACH STATEMENT EXECUTE FUNCTION edda.dawdle()`)
	stop := w.start("tallies", bus.EndpointOptions{Concurrency: 1}, bus.Saga(def))
	w.untilEmpty("tallies")
	stop()
	c := w.counters("tallies", "tally")
	if c.Messages.Steps != 2 || c.Times.Handler < 2*slow || c.Times.Batch < c.Times.Handler+write*9/10 ||
		c.Times.Batch > time.Minute {
		t.Errorf(
			"%d handlers took %v, and their batches %v; want %v or more, and a write of %v besides",
			c.Messages.Steps,
			c.Times.Handler,
			c.Times.Batch,
			2*slow,
			write,
		)
	}
	if c.Times.Critical < 2*time.Hour || c.Times.Critical > 2*time.Hour+time.Minute {
		t.Errorf("the critical time of both is %v, want an hour each", c.Times.Critical)
	}
}

func TestCountersTellWhatASagaDid(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		failed := false
		sagas := tallies(store, func(m saga.Message) {
			if m, ok := m.(add); ok && m.N == 3 && !failed {
				failed = true
				panic("once")
			} else if ok && m.N == 4 {
				panic("always")
			}
		})
		plain := bus.HandleTx(func(*bus.Context, pgx.Tx, place) error { return nil })
		policy := func(f recoverability.Failure) recoverability.Decision {
			if f.Info.Attempt == 1 {
				return recoverability.RetryNow()
			}
			return recoverability.DeadLetter()
		}
		e := w.endpoint("tallies", bus.EndpointOptions{Concurrency: 1, BatchTime: 5 * time.Second, Policy: policy},
			bus.Saga(sagas), plain)
		w.makeQueue("tallies")
		if err := e.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			w.send(add{Key: "a", N: n + 1})
		}
		w.send(ask{Key: "a"})
		w.send(add{Key: "b", N: 1})
		w.send(place{Order: "1"})
		stop := w.run(e)
		w.untilEmpty("tallies")
		stop()
		got := w.counters("tallies", "tally")
		if got.Times.Handler <= 0 || got.Times.Critical <= 0 || got.Times.Batch <= 0 || got.Saves.StateBytes <= 0 ||
			got.Times.Critical < got.Times.Handler {
			t.Errorf("times and sizes: %+v", got)
		}
		got.Times, got.Saves.StateBytes, got.Since, got.Last = operate.TimeCounters{}, 0, time.Time{}, time.Time{}
		want := operate.SagaCounters{
			Endpoint: "tallies", Saga: "tally", Store: bus.StoreName(store), Concurrency: 1, BatchMax: 32,
			Messages: operate.MessageCounters{Taken: 6, Steps: 5, Retries: 2, Dead: 1},
			Saves:    operate.SaveCounters{Batches: 1, Instances: 2, Writes: 2, Starts: 2},
		}
		if got != want {
			t.Errorf("counted\n%+v\nwant\n%+v", got, want)
		}
		if p := w.counters("tallies", ""); p.Messages.Steps != 1 || p.Messages.Taken != 1 || p.Store != "" {
			t.Errorf("plain handlers: %+v", p)
		}
	})
}

func TestCountersTellOfConflicts(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	g := newGate(t)
	stop := w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Optimistic, stopAt(g, 2))))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	w.send(add{Key: "a", N: 2})
	await(w, "the second step", g.came)
	w.exec(`UPDATE edda.saga SET version = version + 1, state = '{"Sum":100}'`)
	g.open()
	w.untilEmpty("tallies")
	stop()
	if c := w.counters("tallies", "tally"); c.Messages.Conflicts != 1 || c.Saves.Lost != 1 || c.Saves.LostStarts != 0 ||
		c.Messages.Steps != 2 ||
		c.Saves.Writes != 2 ||
		c.Saves.Instances != 3 {
		t.Errorf("%+v", c)
	}
}

func TestCountersTellOfWaits(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	start := func() (stop func()) {
		return w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Pessimistic, nil)))
	}
	stop := start()
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	stop()
	var c operate.SagaCounters
	rounds := 0
	w.until("a wait has ended with the instance", func() bool { // on a busy machine each may end before the commit
		rounds++
		stop := start()
		holder := w.begin()
		w.execTx(holder, `SELECT FROM edda.saga FOR NO KEY UPDATE`)
		w.send(ask{Key: "a"})
		w.untilWaiting("wait")
		w.until("a wait has ended in vain", func() bool { // its message is released and taken again
			return w.count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
				AND query LIKE '-- name: wait%' AND position($1 IN query) > 0`, w.schema) == 0
		})
		w.untilWaiting("wait")
		w.commit(holder)
		w.untilEmpty("tallies")
		stop()
		c = w.counters("tallies", "tally")
		return c.Waiting.Timeouts < c.Waiting.Waits
	})
	if c.Waiting.Waits < 2 || c.Waiting.Timeouts < 1 || c.Messages.Busy < 1 || c.Waiting.Wait < 50*time.Millisecond ||
		c.Messages.Steps != int64(1+rounds) {
		t.Errorf("%+v after %d rounds", c, rounds)
	}
}

// An endpoint writes counters while it runs, not only at its end.
func TestCountersAreWrittenNowAndThen(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Pessimistic, nil)))
	w.send(add{Key: "a", N: 1})
	w.until("the counters are there", func() bool {
		return w.count(
			`SELECT coalesce(sum(steps), 0) FROM edda.saga_counter`) == 1
	})
	w.want(1, `SELECT count(*) FROM edda.saga_counter`) // no row is written without counts
}

// A leased endpoint counts the results of its finishes, and the earlier time of its handlers.
func TestCountersTellWhatALeasedEndpointDid(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	policy := func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt == 1 {
			return recoverability.RetryIn(time.Millisecond)
		}
		return recoverability.DeadLetter()
	}
	stop := w.start("tallies", bus.EndpointOptions{Policy: policy, Poll: 50 * time.Millisecond},
		bus.Handle(func(_ *bus.Context, m add) error {
			if <-time.After(10 * time.Millisecond); m.N == 0 {
				return errors.New("no")
			}
			return nil
		}))
	for n := range 4 {
		w.send(add{Key: "a", N: n})
	}
	w.untilEmpty("tallies")
	stop()
	c := w.counters("tallies", "")
	if got := [...]int64{c.Messages.Taken, c.Messages.Steps, c.Messages.Retries, c.Messages.Dead}; got != [...]int64{
		5, 3, 1, 1} || c.Times.Handler < 30*time.Millisecond || c.Times.Batch < c.Times.Handler {
		t.Errorf("%+v", c)
	}
	w.want(311, `SELECT sum(100 * coalesce(h, 0) + 10 * coalesce(r, 0) + coalesce(d, 0)) FROM edda.saga_counter,
		unnest(minute_steps, minute_retries, minute_dead) u(h, r, d)`)
}

// Pages read the table, and no endpoint needs it. A transaction that locks it must not delay an endpoint, or the
// endpoint's end.
func TestCountersNeverHoldUpAnEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	stop := w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Pessimistic, nil)))
	holder := w.begin()
	w.execTx(holder, `LOCK TABLE edda.saga_counter`)
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	begun := time.Now()
	stop()
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("the endpoint ended after %v, waiting for its counters", took)
	}
	w.commit(holder)
	w.want(0, `SELECT count(*) FROM edda.saga_counter`)
}

func TestOldCountersAreDeleted(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.exec(`INSERT INTO edda.saga_counter
		SELECT date_trunc('hour', now(), 'UTC') - d * interval '1 day', 'e', 's', 'optimistic', 3, 500, now(), now(),
		       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
		FROM generate_series(0, 20) d`)
	bus.CleanNow(t.Context(), w.bus)
	w.want(14, `SELECT count(*) FROM edda.saga_counter`)
	for period, want := range map[time.Duration]int64{0: 2, time.Minute: 1, 60 * time.Hour: 3,
		365 * 24 * time.Hour: 14} {
		all, err := w.operator().Endpoints().Counters(t.Context(), period)
		if err != nil || len(all) != 1 || all[0].Messages.Steps != want {
			t.Errorf("of the last %v: %+v %v, want %d steps", period, all, err, want)
		}
	}
	if _, err := w.operator().Endpoints().Counters(t.Context(), -1); err == nil ||
		!strings.Contains(err.Error(), "want 0 (a day) or more") {
		t.Errorf("a negative period: %v", err)
	}
}
