package bus_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// The insert of the new instance ran before the delete of the old instance and met its row: the start was lost, in the
// same batch for ever.
func TestCompleteAndRestartInOneBatch(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		def := tallies(store, nil)
		stop := w.start("tallies", bus.EndpointOptions{}, bus.Saga(def))
		w.send(add{Key: "a", N: 1})
		w.untilEmpty("tallies")
		stop()
		first := w.text(`SELECT iid::text FROM edda.saga`)
		w.send(finish{Key: "a"})
		w.send(add{Key: "a", N: 5})
		w.send(add{Key: "a", N: 6})
		w.start("tallies", bus.EndpointOptions{Concurrency: 1}, bus.Saga(def))
		w.untilEmpty("tallies")
		w.want(11, `SELECT (state ->> 'Sum')::int FROM edda.saga WHERE iid::text <> $1`, first)
		if got := w.toldSums(); got != "1 1 5 11" {
			t.Errorf("told %q, want %q", got, "1 1 5 11")
		}
		if failed := eventsOf[event.Retried](w); len(failed) > 0 {
			t.Errorf("waiting for the next batch counted as a failure: %v", failed[0].Err)
		}
		w.want(0, `SELECT (SELECT count(*) FROM edda.dead_letter) + (SELECT count(*) FROM edda.discarded)`)
	})
}

// An instance that starts and completes in one batch was never written, so no unique index could detect it beside the
// existing instance.
func TestStartAndCompleteBesideALivingInstance(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		g := newGate(t)
		def := saga.Define("tally", saga.Options{Store: store},
			saga.StartedBy(func(m add) string { return m.Key }, func(s *tally, ctx *saga.Context, m add) error {
				g.pass()
				s.Sum += m.N
				ctx.Send(told{Key: m.Key, Sum: s.Sum})
				ctx.Complete()
				return nil
			}))
		w.start("tallies", bus.EndpointOptions{}, bus.Saga(def))
		w.send(add{Key: "a", N: 1})
		await(w, "the step that starts and completes", g.came)
		w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
			VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":100}')`)
		g.open()
		w.untilEmpty("tallies")
		if got := w.toldSums(); got != "101" {
			t.Errorf("told %q, want 101: the living instance is the one that completes", got)
		}
		w.want(0, `SELECT count(*) FROM edda.saga`)
	})
}

// An instance that starts and completes in one batch leaves only its effects.
func TestStartAndCompleteInOneStepIsDone(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	def := tallies(saga.Pessimistic, nil)
	w.install("tallies", bus.Saga(def))
	w.send(add{Key: "a", N: 3})
	w.send(finish{Key: "a"})
	w.start("tallies", bus.EndpointOptions{Concurrency: 1}, bus.Saga(def))
	w.untilEmpty("tallies")
	if got := w.toldSums(); got != "3 3" {
		t.Errorf("told %q, want %q", got, "3 3")
	}
	w.want(0, `SELECT count(*) FROM edda.saga`)
}

// Updates before inserts, and inserts in the order of the queue, let batches that start the same keys wait for each
// other in a circle: each circle cost a second, and the whole batch.
func TestRacingStartsDoNotDeadlock(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		const keys, each = 200, 4
		def := func() bus.Part { return bus.Saga(tallies(store, nil)) }
		w.install("tallies", def())
		var order []int
		for range each {
			order = append(order, rand.Perm(keys)...)
		}
		rand.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		for _, n := range order {
			w.send(add{Key: fmt.Sprint("k", n), N: 1})
		}
		o := bus.EndpointOptions{BatchMax: 50, Concurrency: 2}
		w.start("tallies", o, def())
		w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "tallies", o, def())
		w.untilEmpty("tallies")
		w.want(keys, `SELECT count(*) FROM edda.saga WHERE (state ->> 'Sum')::int = $1`, each)
		w.want(keys*each, `SELECT count(*) FROM `+w.queue("listener"))
		for _, e := range eventsOf[event.BatchFailed](w) {
			if pgerr.ClassOf(e.Err) == pgerr.Race {
				t.Errorf("a batch was lost: %v", e.Err)
			}
		}
	})
}

// A start waits for a concurrent insert of its key, and then finds it committed: it has lost, and continues with that
// instance.
func TestStartThatLostFindsTheWinner(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(store, nil)))
		starter := w.begin()
		w.execTx(starter, `INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
			VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":7}')`)
		w.send(add{Key: "a", N: 1})
		w.untilWaiting("start")
		w.commit(starter)
		w.untilEmpty("tallies")
		if got := w.toldSums(); got != "8" {
			t.Errorf("told %q, want 8", got)
		}
		w.want(2, `SELECT version FROM edda.saga`)
	})
}

// A message behind a start that failed, in one batch, failed too: there was a session for its key, and no instance in
// it.
func TestNeighbourOfAFailedStartHasNoInstance(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	def := tallies(saga.Pessimistic, func(m saga.Message) {
		if _, ok := m.(add); ok {
			panic("the start fails")
		}
	})
	w.install("tallies", bus.Saga(def))
	w.send(add{Key: "a", N: 1})
	w.send(ask{Key: "a"})
	w.start("tallies", bus.EndpointOptions{Concurrency: 1, Policy: once}, bus.Saga(def))
	w.untilEmptyHurrying("tallies")
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
	w.want(1, `SELECT count(*) FROM edda.discarded WHERE kind = 'tally.ask' AND reason = 'no instance'`)
}

// once is a policy without retries.
func once(recoverability.Failure) recoverability.Decision { return recoverability.DeadLetter() }

// The fate of a message without an instance, after all its attempts to find one.
func TestMessageWithoutAnInstance(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options []saga.HandleOption
		ends    string // where it is found
	}{
		"discard": {nil, `SELECT count(*) FROM edda.discarded WHERE reason = 'no instance' AND saga = 'tally'
			AND key = 'a'`},
		"dead letter": {[]saga.HandleOption{saga.IfMissing(saga.MissingDeadLetter)},
			`SELECT count(*) FROM edda.dead_letter WHERE reason = 'no instance' AND attempts = 0`},
		"retry": {[]saga.HandleOption{saga.IfMissing(saga.MissingRetry)},
			`SELECT count(*) FROM edda.dead_letter WHERE attempts = 3 AND position('no saga instance' IN error) > 0`},
		"do": {[]saga.HandleOption{saga.IfMissingDo(func(ctx *saga.Context, m ask) error {
			ctx.Send(told{Key: m.Key, Sum: -1})
			return nil
		})}, `SELECT count(*) FROM edda.queue_1 WHERE convert_from(body, 'UTF8') = '{"Key":"a","Sum":-1}'`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			def := saga.Define("tally", saga.Options{},
				saga.StartedBy(func(m add) string { return m.Key },
					func(*tally, *saga.Context, add) error { return nil }),
				saga.Handles(func(m ask) string { return m.Key }, func(*tally, *saga.Context, ask) error { return nil },
					test.options...))
			policy, err := recoverability.Retries{Delayed: 2, Step: time.Minute}.Policy()
			if err != nil {
				t.Fatal(err)
			}
			w.start("tallies", bus.EndpointOptions{Poll: 20 * time.Millisecond, Policy: policy}, bus.Saga(def))
			w.send(ask{Key: "a"})
			w.untilEmptyHurrying("tallies")
			w.want(1, test.ends)
			looks := 0
			for _, e := range eventsOf[event.Retried](w) {
				if errors.Is(e.Err, bus.ErrMissing) && e.Delay == time.Second {
					looks++
				}
			}
			if looks < 3 {
				t.Errorf("absence was final after %d looks%s", looks, w.story())
			}
		})
	}
}
