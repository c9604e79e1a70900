package bus_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
)

// remembered is a saga that a job starts and jobDone completes, or that completes at once if N is 1, and that is
// remembered for an hour. lives counts its instances.
func remembered(store saga.Store, lives *atomic.Int64) *saga.Definition {
	return saga.Define("long", saga.Options{Store: store, Remember: time.Hour},
		saga.StartedBy(func(m job) string { return "k" + m.Key }, func(_ *nothing, ctx *saga.Context, m job) error {
			if ctx.IsNew() {
				lives.Add(1)
			}
			if m.N == 1 {
				ctx.Complete()
			}
			return nil
		}),
		saga.Handles(func(m jobDone) string { return "k" + m.Key },
			func(_ *nothing, ctx *saga.Context, _ jobDone) error { ctx.Complete(); return nil },
			saga.IfMissing(saga.MissingDeadLetter)))
}

// An instance that is remembered keeps its key until it is forgotten, and its run ends when it completes.
func TestCompletedInstanceIsRemembered(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		var lives atomic.Int64
		d := remembered(store, &lives)
		w.start("long", bus.EndpointOptions{Poll: 20 * time.Millisecond}, bus.Saga(d))
		run := w.fire(job{Key: "a"})
		w.until("it lives", func() bool { return lives.Load() == 1 })
		w.wantRun(run, "active/open")
		w.send(jobDone{Key: "a"})
		w.untilRun(run, "succeeded/succeeded")

		w.send(job{Key: "a"})
		w.untilEmptyOfJobs("long")
		w.want(1, `SELECT count(*) FROM edda.discarded WHERE reason = 'instance has completed'`)
		late := w.send(jobDone{Key: "a"})
		w.until("what must not be lost is a dead letter", func() bool {
			return strings.Contains(w.text(`SELECT coalesce(max(error), '') FROM edda.dead_letter
				WHERE message_id = $1`, [16]byte(late.ID)), "has completed")
		})
		if _, ok, err := w.bus.Instance(t.Context(), d, "ka", nil); ok || err != nil {
			t.Errorf("there is an instance: %t, %v", ok, err)
		}
		w.want(1, `SELECT count(*) FROM edda.saga`)

		w.exec(`UPDATE ` + w.queue("long") + ` SET due = now()`)
		w.untilInstances(0)
		w.send(job{Key: "a"})
		w.until("it lives again", func() bool { return lives.Load() == 2 })
		w.wantRun(run, "succeeded/succeeded")
	})
}

// Several copies of a start, in any processes, start one instance.
func TestCopiesOfAStartAreOneLife(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		var lives atomic.Int64
		o := bus.EndpointOptions{Concurrency: 4, BatchMax: 3, Poll: 20 * time.Millisecond}
		w.install("long", bus.Saga(remembered(store, &lives)))
		const keys, copies = 20, 30
		for range copies {
			for k := range keys {
				w.send(job{Key: string(rune('a' + k)), N: 1})
			}
		}
		w.start("long", o, bus.Saga(remembered(store, &lives)))
		other, _ := w.proxied()
		w.startOn(other, "long", o, bus.Saga(remembered(store, &lives)))
		w.untilEmptyOfJobs("long")
		w.want(keys*(copies-1), `SELECT count(*) FROM edda.discarded WHERE reason = 'instance has completed'`)
		w.want(keys, `SELECT count(*) FROM edda.saga`)
	})
}

// A watch yields the last state of an instance when it has completed, and so does a watch that begins later.
func TestWatchSeesTheLastStateOfARememberedInstance(t *testing.T) {
	w := newWorld(t, bus.Options{})
	d := saga.Define("long", saga.Options{Remember: time.Hour},
		saga.StartedBy(func(m job) string { return "k" + m.Key }, func(s *job, ctx *saga.Context, m job) error {
			*s = m
			if m.N == 7 {
				ctx.Complete()
			}
			return nil
		}))
	w.start("long", bus.EndpointOptions{}, bus.Saga(d))
	w.send(job{Key: "a"})
	var mark bus.WatchCursor
	within := pgdev.Deadline(t)
	for seen, err := range w.bus.Watch(within, d, "ka", bus.WatchCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if mark = seen.Cursor(); seen.Status == bus.InstanceLiving {
			w.send(job{Key: "a", N: 7})
		}
	}
	next := saga.Define("long", saga.Options{StateVersion: 2}, // of the next version of the program
		saga.StartedBy(func(m job) string { return "k" + m.Key },
			func(*struct{ Number int }, *saga.Context, job) error { return nil }),
		saga.Upcast(1, func(m job) (struct{ Number int }, error) { return struct{ Number int }{m.N}, nil }))
	for _, after := range []bus.WatchCursor{{}, mark} {
		for seen, err := range w.bus.Watch(within, next, "ka", after) {
			var last struct{ Number int }
			if err == nil {
				err = seen.Into(&last)
			}
			if err != nil || seen.Status != bus.InstanceComplete || last.Number != 7 {
				t.Errorf("%v, state %+v, %v", seen.Status, last, err)
			}
		}
	}
}
