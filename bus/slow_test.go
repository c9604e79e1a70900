package bus_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// While every message fails an endpoint tries one message at a time, at intervals, and no message twice in a batch. The
// first success ends that.
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
	w.start("slows", bus.EndpointOptions{BreakerFailures: 20, BreakerPause: pause, Concurrency: 4, BatchMax: 8,
		Policy: recoverability.Always(recoverability.RetryNow())}, part)
	w.until("it slows down", func() bool { return len(eventsOf[event.Slowed](w)) == 1 })
	if e := eventsOf[event.Slowed](w)[0]; e.Endpoint != "slows" || e.Failures < 20 || e.Err == nil {
		t.Errorf("%+v", e)
	}
	// Each of the three other workers may have been admitted before that. When it ends its one batch depends on the
	// machine, so three batches spoil six periods at most.
	looks := 0
	for story := "none"; story != ""; looks++ {
		if looks > 6 {
			t.Fatalf("want one attempt in %v, one at a time, and saw %s", pause, story)
		}
		before, begun, from := attempts.Load(), len(eventsOf[event.BatchDone](w)), time.Now()
		most.Store(0)
		w.until("five more were tried", func() bool { return len(eventsOf[event.BatchDone](w)) >= begun+5 })
		n, took, taken := attempts.Load()-before, time.Since(from), 0
		for _, e := range eventsOf[event.BatchDone](w)[begun:] {
			taken = max(taken, e.Taken)
		}
		story = ""
		if most.Load() != 1 || time.Duration(n-2)*pause > took || taken > 1 {
			story = fmt.Sprintf("%d attempts in %v, up to %d at once, and up to %d messages taken together", n, took,
				most.Load(), taken)
		}
	}
	broken.Store(0)
	w.untilEmpty("slows")
	untilTold[event.Recovered](w, 1)
	if e := eventsOf[event.Recovered](w); len(e) != 1 || e[0].SlowFor < 5*pause {
		t.Errorf("recovered: %+v", e)
	}
	if n := len(eventsOf[event.Slowed](w)); n != 1 {
		t.Errorf("slowed down %d times", n)
	}
}

// Half of all messages are poison, and healthy messages are among them: the endpoint does not slow down, however many
// messages fail in a row by the clock of one batch.
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
	w.start("poisoned", bus.EndpointOptions{BreakerFailures: 15, BreakerPause: time.Nanosecond, BatchMax: 20,
		Concurrency: 1,
		Policy:      once}, part)
	w.untilEmpty("poisoned")
	w.want(270, `SELECT count(*) FROM edda.dead_letter`)
	if n := len(eventsOf[event.Slowed](w)); n > 0 {
		t.Errorf("slowed down %d times%s", n, w.story())
	}
}
