package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

type jobDone struct {
	Key  string
	Fail bool
}
type jobLate struct{}

func (jobDone) Kind() string { return "run.done" }
func (jobLate) Kind() string { return "run.late" }

// longJobs is a saga that a job starts, and that a later message or a timeout completes.
func longJobs(store saga.Store, late time.Duration) *saga.Definition {
	key := func(key string) string { return "k" + key }
	return saga.Define("long", saga.Options{Store: store},
		saga.StartedBy(func(m job) string { return key(m.Key) }, func(_ *nothing, ctx *saga.Context, m job) error {
			if m.N < 0 {
				return errNo
			}
			if ctx.IsNew() {
				ctx.Timeout(late, jobLate{})
			}
			return nil
		}),
		saga.Handles(func(m jobDone) string { return key(m.Key) },
			func(_ *nothing, ctx *saga.Context, m jobDone) error {
				ctx.Complete()
				if m.Fail {
					return errNo
				}
				return nil
			}),
		saga.OnTimeout(func(_ *nothing, ctx *saga.Context, _ jobLate) error { ctx.Complete(); return nil }))
}

func (w *world) untilInstances(n int) {
	w.t.Helper()
	w.until("so many instances live", func() bool { return w.count(`SELECT count(*) FROM edda.saga`) == n })
}

// The run of a message that starts an instance is open while the instance exists, and ends with it.
func TestRunEndsWithTheSagaThatItStarted(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("long", bus.EndpointOptions{Policy: giveUp}, bus.Saga(longJobs(store, time.Hour)))
		f := w.fire(job{Key: "a"})
		w.untilInstances(1)
		w.untilEmptyOfJobs("long")
		w.wantRun(f, "active/open")

		failing := w.send(jobDone{Key: "a", Fail: true}) // a later step that fails does not end the run
		w.until("it failed", func() bool {
			return w.count(`SELECT count(*) FROM edda.dead_letter WHERE message_id = $1`, [16]byte(failing.ID)) == 1
		})
		w.wantRun(f, "active/open")

		w.send(jobDone{Key: "a"})
		w.untilRun(f, "succeeded/succeeded")
		w.untilInstances(0)
	})
}

// untilEmptyOfJobs waits until no message but timeouts is in a queue.
func (w *world) untilEmptyOfJobs(endpoint string) {
	w.t.Helper()
	table := w.queue(endpoint)
	w.until("no message waits", func() bool {
		return w.count(`SELECT count(*) FROM `+table+
			` WHERE due <= now()`) == 0
	})
}

func TestRunEndsWithTheTimeoutOfItsSaga(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("long", bus.EndpointOptions{Poll: 20 * time.Millisecond},
			bus.Saga(longJobs(store, 50*time.Millisecond)))
		f := w.fire(job{Key: "a"})
		w.untilRun(f, "succeeded/succeeded")
		w.untilInstances(0)
	})
}

// An instance is started and completed by two messages of one batch: it was never in the table, and the run ends all
// the same.
func TestRunOfASagaOfOneBatch(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		d := longJobs(store, time.Hour)
		w.install("long", bus.Saga(d))
		f := w.fire(job{Key: "a"})
		w.send(jobDone{Key: "a"})
		w.start("long", bus.EndpointOptions{Concurrency: 1}, bus.Saga(d))
		w.untilRun(f, "succeeded/succeeded")
		w.untilInstances(0)
		w.until("the batch is told", func() bool { return len(eventsOf[event.Handled](w)) == 2 })
		if batches := eventsOf[event.BatchDone](w); len(batches) > 1 {
			t.Errorf("%d batches, want one", len(batches))
		}
	})
}

// Only the run that started an instance stays open with it.
func TestRunThatFindsAnInstanceEndsWithItsMessage(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("long", bus.EndpointOptions{Policy: giveUp}, bus.Saga(longJobs(store, time.Hour)))
		first := w.fire(job{Key: "a"})
		w.untilInstances(1)
		second, third := w.fire(job{Key: "a"}), w.fire(job{Key: "a", N: -1})
		w.untilRun(second, "succeeded/succeeded")
		w.untilRun(third, "waiting/failed")
		w.wantRun(first, "active/open")
		w.send(jobDone{Key: "a"})
		w.untilRun(first, "succeeded/succeeded")
		w.untilRun(third, "waiting/failed")
	})
}

// A start that fails starts no instance, and its run ends; the run of the start that succeeds is stored.
func TestRunOfAStartThatFailed(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		d := longJobs(store, time.Hour)
		w.install("long", bus.Saga(d))
		failed, started := w.fire(job{Key: "a", N: -1}), w.fire(job{Key: "a"})
		w.start("long", bus.EndpointOptions{Policy: giveUp}, bus.Saga(d))
		w.untilRun(failed, "waiting/failed")
		w.untilInstances(1)
		w.wantRun(started, "active/open")
		w.send(jobDone{Key: "a"})
		w.untilRun(started, "succeeded/succeeded")
	})
}

// A saga whose run is over continues and completes, and the run keeps its state.
func TestSagaOfARunThatIsOverCompletes(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("long", bus.EndpointOptions{}, bus.Saga(longJobs(store, time.Hour)))
		cancelled, overtaken := w.fire(job{Key: "a"}), w.fire(job{Key: "b"})
		w.untilInstances(2)
		w.cancelRunInSQL(cancelled)
		next := w.again(overtaken)
		w.send(jobDone{Key: "a"})
		w.send(jobDone{Key: "b"})
		w.untilInstances(0)
		w.wantRun(cancelled, "cancelled/open")
		w.wantRun(next, "active/open")
	})
}

// A saga also completes when its manifest has been deleted: no run is left to end.
func TestSagaOfARunThatIsGoneCompletes(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("long", bus.EndpointOptions{}, bus.Saga(longJobs(store, time.Hour)))
		w.fire(job{Key: "a"})
		w.untilInstances(1)
		w.exec(`DELETE FROM edda.manifest`)
		w.send(jobDone{Key: "a"})
		w.untilInstances(0)
	})
}

// Two processes contend for hot instances, with runs on both sides: each run ends once, whichever process loses saves.
func TestRunsOfContendedSagas(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		d := longJobs(store, time.Hour)
		o := bus.EndpointOptions{Concurrency: 4, BatchMax: 10, Poll: 20 * time.Millisecond,
			Policy: func(recoverability.Failure) recoverability.Decision { return recoverability.RetryNow() }}
		w.install("long", bus.Saga(d))
		const keys, each = 5, 20
		for n := range each {
			for k := range keys {
				w.fire(job{Key: string(rune('a' + k))})
				if n%4 == 3 {
					w.send(jobDone{Key: string(rune('a' + k))})
				}
			}
		}
		w.start("long", o, bus.Saga(d))
		other, _ := w.proxied()
		w.startOn(other, "long", o, bus.Saga(longJobs(store, time.Hour)))
		w.untilEmptyOfJobs("long")
		for k := range keys {
			w.send(jobDone{Key: string(rune('a' + k))})
		}
		w.until("every run has ended", func() bool {
			return w.count(`SELECT count(*) FROM edda.run WHERE state = 'succeeded'`) == keys*each
		})
		w.want(keys*each, `SELECT successes FROM edda.manifest`)
	})
}

// A batch that waits for the run of a saga that it completes must not hold a start that other batches wait for: it
// locks the run first.
func TestCompletionLocksItsRunBeforeStarts(t *testing.T) {
	w := newWorld(t, bus.Options{})
	d := longJobs(saga.Optimistic, time.Hour)
	stop := w.start("long", bus.EndpointOptions{}, bus.Saga(d))
	f := w.fire(job{Key: "a"})
	w.untilInstances(1)
	w.untilEmptyOfJobs("long")
	stop()
	w.send(jobDone{Key: "a"})
	w.send(job{Key: "z"})
	tx := w.begin()
	if _, err := tx.Exec(t.Context(), w.sql(`SELECT FROM edda.run FOR UPDATE`)); err != nil {
		t.Fatal(err)
	}
	holder := pgtest.Backend(t, tx)
	w.start("long", bus.EndpointOptions{Concurrency: 1}, bus.Saga(d))
	w.until("the batch waits for the run", func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, holder) == 1
	})
	_, err := tx.Exec(t.Context(), w.sql(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'long', 'kz', 1, 1, '{}')`))
	if err == nil {
		err = tx.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.untilRun(f, "succeeded/succeeded")
	w.untilEmptyOfJobs("long")
	if failed := eventsOf[event.BatchFailed](w); len(failed) > 0 {
		t.Errorf("a batch failed: %v", failed[0].Err)
	}
}
