package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// A Forward that says of every message that it was behind another must not make the relay spin.
func TestRelayDoesNotSpinOnBehind(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	a.set(func(*saga.Delivery) error { return bus.ErrBehind })
	w.sendCrossed(3)
	o := soonRelayed()
	o.Retry, o.RetryMost = 50*time.Millisecond, 100*time.Millisecond
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.until("it was tried", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.calls > 0 })
	begun := time.Now()
	<-time.After(time.Second)
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := int(time.Since(begun)/o.Retry) + 5; a.calls > most {
		t.Errorf("forward was called %d times in a second, want %d at most", a.calls, most)
	}
}
