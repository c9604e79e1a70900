package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// If a Forward returns ErrBehind for every message, the relay must not spin.
func TestRelayDoesNotSpinOnBehind(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	a.set(func(*saga.Delivery) error { return outbox.ErrBehind })
	w.sendCrossed(3)
	o := soonRelayed()
	o.Retry, o.MaxRetryDelay = 50*time.Millisecond, 100*time.Millisecond
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.until("it was tried", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.calls > 0 })
	begun := time.Now()
	<-time.After(time.Second)
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := int(time.Since(begun)/o.Retry) + 5; a.calls > most {
		t.Errorf("forward was called %d times in a second, want %d at most", a.calls, most)
	}
	if n := len(eventsOf[event.Retried](w)); n == 0 {
		t.Error("nobody was told that nothing goes through")
	}
}

// The relay tries a message again after the time of saga.RetryAfter, and after MaxRetryDelay at the latest.
func TestRelayObeysRetryAfter(t *testing.T) {
	for name, c := range map[string]struct{ after, most, want time.Duration }{
		"the time of the error": {400 * time.Millisecond, time.Minute, 400 * time.Millisecond},
		"MaxRetryDelay":         {time.Hour, 200 * time.Millisecond, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.installRelay()
			var tried []time.Time
			a := &abroad{refuse: func(d *saga.Delivery) error {
				if tried = append(tried, time.Now()); d.Info.Attempt != len(tried) {
					t.Errorf("attempt %d is called attempt %d", len(tried), d.Info.Attempt)
				}
				if len(tried) > 1 {
					return nil
				}
				return saga.RetryAfter(c.after, errNo)
			}}
			w.sendCrossed(1)
			o := soonRelayed()
			o.Retry, o.MaxRetryDelay = time.Millisecond, c.most
			stop := w.runRelay(w.relay(w.bus, o, a.forward))
			w.untilEmpty("border")
			stop()
			if took := tried[1].Sub(tried[0]); took < c.want {
				t.Errorf("tried again after %v, want %v", took, c.want)
			}
		})
	}
}

// A batch whose messages all become dead letters at once is progress: the next batch follows without a wait.
func TestRelayWaitsForNoDead(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	a.set(func(*saga.Delivery) error { return saga.Permanent(errors.New("not taken")) })
	w.sendCrossed(12)
	o := soonRelayed()
	o.BatchMax, o.Retry, o.MaxRetryDelay = 1, time.Hour, time.Hour
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.untilEmpty("border")
	w.want(12, `SELECT count(*) FROM edda.dead_letter`)
}

// An error that ended one Run does not end the next.
func TestRelayRunsAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	r := w.relay(w.bus, soonRelayed(), a.forward)
	for range 2 {
		stop := w.runRelay(r)
		w.sendCrossed(1)
		w.untilEmpty("border")
		stop()
	}
}
