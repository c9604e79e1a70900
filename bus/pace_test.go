package bus_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/recoverability"
)

func TestLeasedEndpointIsPausedAndResized(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var g gauge
	gate := make(chan struct{})
	w.start("callers", bus.EndpointOptions{Concurrency: 2, Poll: 30 * time.Millisecond},
		bus.Handle(func(*bus.Context, call) error {
			g.enter()
			defer g.leave()
			<-gate
			return nil
		}))
	w.sendMany(12)
	w.until("two run", func() bool { return g.now.Load() == 2 })
	if err := w.operator().Endpoints().SetConcurrency(t.Context(), "callers", 5); err != nil {
		t.Fatal(err)
	}
	w.until("five run", func() bool { return g.now.Load() == 5 })
	if err := w.operator().Endpoints().Pause(t.Context(), "callers", "by a test"); err != nil {
		t.Fatal(err)
	}
	w.until("the pause is told", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	for left := 11; left >= 7; left-- { // one after the other, so that a worker would take the next message
		gate <- struct{}{}
		w.until("a message in hand is handled", func() bool { return w.rows("callers") == left })
	}
	if n := g.now.Load(); n != 0 {
		t.Errorf("%d run in a paused endpoint", n)
	}
	if err := w.operator().Endpoints().Resume(t.Context(), "callers"); err != nil {
		t.Fatal(err)
	}
	close(gate)
	w.untilEmpty("callers")
}

func TestLeasedPolicyPausesItsEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var runs atomic.Int32
	w.start("callers", bus.EndpointOptions{Concurrency: 1, Poll: 30 * time.Millisecond,
		Policy: func(recoverability.Failure) recoverability.Decision {
			return recoverability.PauseEndpoint("the provider is down")
		}},
		bus.Handle(func(*bus.Context, call) error { runs.Add(1); return errors.New("no answer") }))
	w.sendMany(3)
	w.until("it is paused", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	w.want(1, "SELECT count(*) FROM edda.endpoint_setting WHERE endpoint = 'callers' AND reason = 'the "+
		"provider is down'")
	if n := runs.Load(); n > 3 || w.rows("callers") != 3 {
		t.Errorf("%d attempts, %d messages are left", n, w.rows("callers"))
	}
}

func TestLeasedEndpointSlowsDown(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var g gauge
	var healthy atomic.Bool
	w.start("callers", bus.EndpointOptions{Concurrency: 4, Poll: 20 * time.Millisecond, BreakerFailures: 5,
		BreakerPause: 100 * time.Millisecond,
		Policy: func(recoverability.Failure) recoverability.Decision {
			return recoverability.RetryIn(
				time.Millisecond)
		}},
		bus.Handle(func(*bus.Context, call) error {
			g.enter()
			defer g.leave()
			<-time.After(time.Millisecond)
			if healthy.Load() {
				return nil
			}
			return errors.New("no answer")
		}))
	w.sendMany(4)
	w.until("it is slow", func() bool { return len(eventsOf[event.Slowed](w)) == 1 })
	w.until("nothing runs", func() bool { return g.now.Load() == 0 })
	g.most.Store(0)
	before, since := len(eventsOf[event.Retried](w)), time.Now()
	<-time.After(500 * time.Millisecond)
	tried := len(eventsOf[event.Retried](w)) - before
	// Four were in hand when it slowed down, and are reported a moment later. At full speed there would be hundreds.
	if most := int(time.Since(since)/(100*time.Millisecond)) + 6; tried > most || g.most.Load() > 1 {
		t.Errorf("%d attempts in %v, %d at a time", tried, time.Since(since), g.most.Load())
	}
	healthy.Store(true)
	w.untilEmpty("callers")
	untilTold[event.Recovered](w, 1)
	if got := len(eventsOf[event.Recovered](w)); got != 1 {
		t.Errorf("%d recoveries", got)
	}
}
