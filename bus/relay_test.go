package bus_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// crossed is a message for the other side of a border.
type crossed struct {
	Key string
	N   int
}

func (crossed) Kind() string { return "border.crossed" }

// abroad is the other side of a border: it keeps what it is given, in that order.
type abroad struct {
	mu    sync.Mutex
	got   []saga.ID
	infos []saga.Info
	calls int

	refuse func(d *saga.Delivery) error // nil takes everything
}

func (a *abroad) forward(_ context.Context, messages []*saga.Delivery) []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	errs := make([]error, len(messages))
	failed := false
	for n, d := range messages {
		if failed {
			errs[n] = bus.ErrBehind
			continue
		}
		if a.refuse != nil {
			if errs[n] = a.refuse(d); errs[n] != nil {
				var permanent *saga.PermanentError
				failed = !errors.As(errs[n], &permanent)
				continue
			}
		}
		a.got, a.infos = append(a.got, d.Info.ID), append(a.infos, d.Info)
	}
	return errs
}

// set changes what the other side refuses.
func (a *abroad) set(refuse func(d *saga.Delivery) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = refuse
}

func (a *abroad) ids() []saga.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

// firsts are the first copies of what arrived.
func (a *abroad) firsts() (ids []saga.ID) {
	seen := map[saga.ID]bool{}
	for _, id := range a.ids() {
		if !seen[id] {
			ids = append(ids, id)
		}
		seen[id] = true
	}
	return ids
}

func soonRelayed() bus.RelayOptions {
	return bus.RelayOptions{Poll: 100 * time.Millisecond, Lease: 2 * time.Second, Retry: 2 * time.Millisecond, RetryMost: 20 * time.Millisecond}
}

func (w *world) relay(b *bus.Bus, o bus.RelayOptions, f bus.Forward) *bus.Relay {
	w.t.Helper()
	r, err := bus.NewRelay(b, "border", o, f, crossed{}.Kind())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// installRelay installs the relay as the owner of the schema, where the engine's role may not.
func (w *world) installRelay() {
	w.t.Helper()
	if err := w.relay(w.ownersBus(), bus.RelayOptions{}, (&abroad{}).forward).Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) runRelay(r *bus.Relay) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Errorf("relay %s: %v", r.Name(), err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) sendCrossed(n int) (ids []saga.ID) {
	w.t.Helper()
	for i := range n {
		ids = append(ids, w.send(crossed{N: i}).ID)
	}
	return ids
}

func TestRelayInOrder(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	want := w.sendCrossed(50)
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	want = append(want, w.sendCrossed(50)...)
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
	w.until("the events are there", func() bool {
		sum := 0
		for _, e := range eventsOf[bus.Relayed](w) {
			sum += e.Messages
		}
		return sum == 100
	})
}
