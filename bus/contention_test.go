package bus_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
)

// Two processes handle messages of one instance of the pessimistic store. An earlier message has started it, so that
// they do not race for the start: their steps follow each other, each reads the state that the previous step left, and
// no step is wasted.
func TestStepsOfOneInstanceNeverOverlap(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var inside gauge
	var steps [2]atomic.Int64 // of each process
	part := func(process int) bus.Part {
		return bus.Saga(tallies(saga.Pessimistic, func(saga.Message) {
			inside.enter()
			defer inside.leave()
			steps[process].Add(1)
			<-time.After(time.Millisecond)
		}))
	}
	o := bus.EndpointOptions{BatchMax: 5, Concurrency: 2}
	w.start("tallies", o, part(0))
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "tallies", o, part(1))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	messages := 1
	// one process may be done before the other is awake
	for messages == 1 || messages < 2000 && (steps[0].Load() == 0 || steps[1].Load() == 0) {
		tx := w.begin()
		for range 200 {
			if _, err := w.bus.SendTx(t.Context(), tx, add{Key: "a", N: 1}); err != nil {
				t.Fatal(err)
			}
		}
		w.commit(tx)
		messages += 200
		w.untilEmpty("tallies")
	}
	if most := inside.most.Load(); most != 1 {
		t.Errorf("%d steps of one instance ran at a time", most)
	}
	if first, second := steps[0].Load(), steps[1].Load(); first+second != int64(messages) || first == 0 || second == 0 {
		t.Errorf("the processes made %d and %d steps, want %d together and some of both", first, second, messages)
	}
	if lost := eventsOf[event.Conflicted](w); len(lost) > 0 {
		t.Errorf("%d saves were lost, the first: %+v", len(lost), lost[0])
	}
	w.want(messages, `SELECT count(DISTINCT convert_from(body, 'UTF8')::json ->> 'Sum') FROM `+w.queue("listener"))
	w.want(messages, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
}

// Messages that start, change and complete the same few instances arrive at two processes in any order. Each takes
// effect once, on the instance that its key has at that moment.
func TestEveryChangeAndCompletionHitsOneLife(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		lives := func() bus.Part {
			return bus.Saga(saga.Define("tally", saga.Options{Store: store},
				saga.StartedBy(func(m add) string { return m.Key }, func(s *tally, ctx *saga.Context, m add) error {
					s.Sum++
					ctx.Send(told{Key: m.Key, Sum: s.Sum})
					if m.N == 0 {
						ctx.Complete()
					}
					return nil
				})))
		}
		w.install("tallies", lives())
		const messages, keys = 400, 3
		ends := map[string]int{}
		for n := range messages {
			m := add{Key: fmt.Sprint(n % keys), N: rand.IntN(4)}
			if m.N == 0 {
				ends[m.Key]++
			}
			w.send(m)
		}
		o := bus.EndpointOptions{BatchMax: 5, Concurrency: 2}
		w.start("tallies", o, lives())
		w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "tallies", o, lives())
		w.untilEmpty("tallies")
		w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		heard := w.queue("listener")
		w.want(messages, `SELECT count(*) FROM `+heard)
		for key, ended := range ends {
			alive := w.count(`SELECT count(*) FROM edda.saga WHERE key = $1`, key)
			w.want(ended+alive, `SELECT count(*) FROM `+heard+
				` WHERE convert_from(body, 'UTF8')::jsonb @> jsonb_build_object('Key', $1::text, 'Sum', 1)`, key)
		}
	})
}

// LockWait of a saga sets how long a batch waits for an instance that a different worker holds. With the default the
// batch would have given up several times here.
func TestLockWaitIsSetForASaga(t *testing.T) {
	w := newWorld(t, bus.Options{})
	patient := saga.Define("patient", saga.Options{LockWait: time.Minute},
		saga.StartedBy(func(m add) string { return m.Key },
			func(s *tally, _ *saga.Context, m add) error { s.Sum += m.N; return nil }))
	stop := w.start("tallies", bus.EndpointOptions{}, bus.Saga(patient))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	holder := w.begin()
	w.execTx(holder, `SELECT FROM edda.saga FOR NO KEY UPDATE`)
	w.send(add{Key: "a", N: 2})
	w.untilWaiting("wait")
	<-time.After(300 * time.Millisecond)
	w.commit(holder)
	w.untilEmpty("tallies")
	stop()
	if c := w.counters("tallies", "patient"); c.Waiting.Waits != 1 || c.Waiting.Timeouts != 0 ||
		c.Waiting.Wait < 300*time.Millisecond {
		t.Errorf(
			"%d waits of %v together, %d of them in vain; want one that lasts",
			c.Waiting.Waits,
			c.Waiting.Wait,
			c.Waiting.Timeouts,
		)
	}
	w.want(3, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
}
