package bus_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// While nothing succeeds an endpoint tries one message at a time, once in a while, and no message twice in a batch. The first
// success ends that.
func TestAnEndpointSlowsDownWhileNothingSucceeds(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var broken, attempts, at, most atomic.Int64
	broken.Store(1)
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, add) error {
		now := at.Add(1)
		defer at.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		attempts.Add(1)
		if broken.Load() == 1 {
			return errNo
		}
		return nil
	})
	var numbers []int
	for n := range 60 {
		numbers = append(numbers, n)
	}
	w.fill("slows", part, numbers...)
	const pause = 50 * time.Millisecond
	w.start("slows", bus.EndpointOptions{SlowAfter: 20, SlowPause: pause, Concurrency: 4, BatchMax: 8,
		Policy: recoverability.Always(recoverability.RetryNow())}, part)
	w.until("it slows down", func() bool { return len(eventsOf[bus.Slowed](w)) == 1 })
	if e := eventsOf[bus.Slowed](w)[0]; e.Endpoint != "slows" || e.Failures < 20 || e.Err == nil {
		t.Errorf("%+v", e)
	}
	begun := len(eventsOf[bus.BatchDone](w))
	w.until("what was in hand is over", func() bool { return len(eventsOf[bus.BatchDone](w)) >= begun+5 })
	before, from := attempts.Load(), time.Now()
	most.Store(0)
	begun = len(eventsOf[bus.BatchDone](w))
	w.until("five more were tried", func() bool { return len(eventsOf[bus.BatchDone](w)) >= begun+5 })
	if n, took := attempts.Load()-before, time.Since(from); most.Load() != 1 || time.Duration(n-2)*pause > took {
		t.Errorf("%d attempts in %v by up to %d workers, want one in %v by one", n, took, most.Load(), pause)
	}
	for _, e := range eventsOf[bus.BatchDone](w)[begun:] {
		if e.Taken != 1 {
			t.Errorf("took %d messages at a time", e.Taken)
		}
	}
	broken.Store(0)
	w.untilEmpty("slows")
	if e := eventsOf[bus.Recovered](w); len(e) != 1 || e[0].SlowFor < 5*pause {
		t.Errorf("recovered: %+v", e)
	}
	if n := len(eventsOf[bus.Slowed](w)); n != 1 {
		t.Errorf("slowed down %d times", n)
	}
}

// Half of all messages are poison, and healthy ones are among them: nobody slows down, however many fail in a row by the
// clock of one batch.
func TestPoisonAmongHealthyMessagesSlowsNobody(t *testing.T) {
	w := newWorld(t, bus.Options{})
	part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error {
		if m.N%10 != 0 {
			return errNo
		}
		return nil
	})
	var numbers []int
	for n := range 300 {
		numbers = append(numbers, n)
	}
	w.fill("poisoned", part, numbers...)
	w.start("poisoned", bus.EndpointOptions{SlowAfter: 15, SlowPause: time.Nanosecond, BatchMax: 20, Concurrency: 1, Policy: once}, part)
	w.untilEmpty("poisoned")
	w.want(270, `SELECT count(*) FROM edda.dead_letter`)
	if n := len(eventsOf[bus.Slowed](w)); n > 0 {
		t.Errorf("slowed down %d times%s", n, w.story())
	}
}
