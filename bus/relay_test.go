package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// crossed is a message for the other side of a border.
type crossed struct {
	Key string
	N   int
}

func (crossed) Kind() string { return "border.crossed" }

// abroad is the other side of a border: it records the messages that it gets, in that order.
type abroad struct {
	mu    sync.Mutex
	got   []saga.ID
	infos []saga.Info
	calls int

	refuse func(d *saga.Delivery) error // nil accepts every message
}

func (a *abroad) forward(_ context.Context, messages []*saga.Delivery) []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	errs := make([]error, len(messages))
	failed := false
	for n, d := range messages {
		if failed {
			errs[n] = outbox.ErrBehind
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

// set changes which messages the other side refuses.
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

// firsts returns the first copies of the messages that arrived.
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

func soonRelayed() outbox.RelayOptions {
	return outbox.RelayOptions{Poll: 100 * time.Millisecond, Lease: 2 * time.Second, Retry: 2 * time.Millisecond,
		MaxRetryDelay: 20 * time.Millisecond}
}

func (w *world) relay(b *bus.Bus, o outbox.RelayOptions, f outbox.Forward) *outbox.Relay {
	w.t.Helper()
	r, err := bus.NewRelay(b, "border", o, f, crossed{}.Kind())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// installRelay installs the relay as the owner of the schema, because the engine's role may not.
func (w *world) installRelay() {
	w.t.Helper()
	if err := w.relay(w.ownersBus(), outbox.RelayOptions{}, (&abroad{}).forward).Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) runRelay(r *outbox.Relay) (stop func()) {
	w.t.Helper()
	return pgtest.Run(w.t, "relay "+r.Name(), r.Run)
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
		for _, e := range eventsOf[event.Relayed](w) {
			sum += e.Messages
		}
		return sum == 100
	})
}

func TestRelaysAreRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	forward := (&abroad{}).forward
	for _, c := range []struct {
		name    string
		o       outbox.RelayOptions
		forward outbox.Forward
		kinds   []string
		want    string
	}{
		{"r", outbox.RelayOptions{BatchMax: -1}, forward, nil,
			"BatchMax is -1, want 0 to 5000 (0 is the default, 500)"},
		{"r", outbox.RelayOptions{BatchMax: 5001}, forward, nil, "BatchMax is 5001"},
		{"r", outbox.RelayOptions{BatchBytes: -1}, forward, nil, "BatchBytes is -1, want 0 to 268435456"},
		{"r", outbox.RelayOptions{Poll: -1}, forward, nil, "Poll is -1ns"},
		{"r", outbox.RelayOptions{Lease: time.Second}, forward, nil, "Lease is 1s, want 2s to 1h0m0s"},
		{"r", outbox.RelayOptions{Drain: -1}, forward, nil, "Drain is -1ns"},
		{"r", outbox.RelayOptions{Keep: time.Second}, forward, nil, "Keep is 1s, want 1m0s to"},
		{"r", outbox.RelayOptions{Retry: -1}, forward, nil, "Retry is -1ns"},
		{"r", outbox.RelayOptions{MaxRetryDelay: 2 * time.Hour}, forward, nil,
			"MaxRetryDelay is 2h0m0s, want 1ms to 1h0m0s"},
		{"r", outbox.RelayOptions{Retry: time.Minute}, forward, nil, "Retry is 1m0s and MaxRetryDelay is 30s"},
		{"r", outbox.RelayOptions{Stuck: -1}, forward, nil, "Stuck is -1"},
		{"r", outbox.RelayOptions{Holder: "a\nb"}, forward, nil, "control characters"},
		{"R", outbox.RelayOptions{}, forward, nil, "beginning with a letter"},
		{"r", outbox.RelayOptions{}, forward, []string{"No Kind"}, "kind: "},
		{"r", outbox.RelayOptions{}, forward, []string{"a.b", "a.b"}, "kind a.b is given twice"},
		{"r", outbox.RelayOptions{}, nil, nil, "forward is nil"},
	} {
		if _, err := bus.NewRelay(w.bus, c.name, c.o, c.forward, c.kinds...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.name, c.o, err, c.want)
		}
	}
	if _, err := bus.NewRelay(nil, "r", outbox.RelayOptions{}, forward); err == nil {
		t.Error("no bus")
	}
	if err := w.relay(w.processWithoutInstall(), outbox.RelayOptions{}, forward).Run(t.Context()); !errors.Is(err,
		bus.ErrNotInstalled) {
		t.Errorf("Run of what is not installed: %v", err)
	}
}

// A name belongs to a relay or to an endpoint, and every call that would use it otherwise fails.
func TestRelaysAndEndpointsDoNotShareNames(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.start("orders", bus.EndpointOptions{}, bus.HandleTx(hears))
	w.until("it has run", func() bool {
		return w.count(
			`SELECT count(*) FROM edda.endpoint_setting WHERE endpoint = 'orders'`) == 1
	})
	e := w.endpoint("border", bus.EndpointOptions{}, bus.HandleTx(hears))
	r, err := bus.NewRelay(w.bus, "orders", outbox.RelayOptions{}, (&abroad{}).forward)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := bus.NewRelay(w.ownersBus(), "orders", outbox.RelayOptions{}, (&abroad{}).forward)
	if err != nil {
		t.Fatal(err)
	}
	for call, c := range map[string]struct {
		err  error
		want string
	}{
		"the endpoint's Run":   {e.Run(t.Context()), "this queue is a relay's"},
		"the endpoint's Check": {e.Check(t.Context()), "choose a different name for the endpoint"},
		"InstallQueue": {w.ownersBus().InstallQueue(t.Context(), "border", "a.b"),
			"this queue is a relay's"},
		"the relay's Run": {r.Run(t.Context()), "run relay orders: "},
		"the relay's Install": {owner.Install(t.Context()), "an endpoint of this name has run here: choose a " +
			"different name for the relay"},
		"SetConcurrency": {w.operator().Endpoints().SetConcurrency(t.Context(), "border", 2), "it is a relay"},
		"SetLimit":       {w.operator().Limits().Set(t.Context(), "border", 2), "it is a relay"},
		"InstallRelay of no name": {w.operatorOf(w.owner).Queues().InstallRelay(t.Context(), "No Name"),
			"beginning with a letter"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", call, c.err, c.want)
		}
	}
	if err := w.operatorOf(w.owner).Queues().InstallRelay(t.Context(), "border", "a.b"); err != nil {
		t.Errorf("a second install: %v", err)
	}
	infos, err := w.operator().Queues().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		if i.Relay != (i.Endpoint == "border") {
			t.Errorf("%s is shown as a relay: %v", i.Endpoint, i.Relay)
		}
	}
}
