package nested

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The answer of a parcel counts once, and a second order of the same name starts nothing.
func TestShipmentCountsAParcelOnce(t *testing.T) {
	t.Parallel()
	r := sagatest.New(t, Shipments)
	for range 2 {
		must(t, r.Deliver(ShipOrder{Order: "7", Parcels: []string{"a", "b"}}))
	}
	a, b := ShipParcel{Parcel: "7/a"}, ShipParcel{Parcel: "7/b"}
	if got := r.Sent(); !slices.Equal(got, []saga.Message{a, b}) {
		t.Fatalf("sent %v, want %v and %v", got, a, b)
	}
	must(t, r.Reply(a, ParcelEnded{Parcel: "7/a", Delivered: true}))
	must(t, r.Reply(b, ParcelEnded{Parcel: "7/a"})) // again, and b stays open
	if s := sagatest.State[Shipment](r, "7"); len(s.Open) != 1 || len(s.Lost) != 0 {
		t.Errorf("%+v, want one open parcel", s)
	}
}

// world has both sagas, and those who wait for the end.
type world struct {
	*memory.Bus
	t       *testing.T
	shipped chan OrderShipped
}

func open(t *testing.T) world {
	t.Helper()
	b, err := memory.New(memory.Options{Logger: slog.New(slog.DiscardHandler),
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})
	must(t, err)
	w := world{Bus: b, t: t, shipped: make(chan OrderShipped, 10)}
	for name, part := range map[string]bus.Part{"shipments": bus.Saga(Shipments), "parcels": bus.Saga(Parcels),
		"desk": bus.Handle(func(_ *bus.Context, m OrderShipped) error { w.shipped <- m; return nil })} {
		_, err := memory.NewEndpoint(b, name, bus.EndpointOptions{}, part)
		must(t, err)
	}
	stop, err := b.Start(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, stop()) })
	return w
}

// send sends messages, and waits until all messages that follow from them are handled.
func (w world) send(messages ...saga.Message) {
	w.t.Helper()
	for _, m := range messages {
		_, err := w.Send(w.t.Context(), m)
		must(w.t, err)
		must(w.t, w.Advance(w.t.Context(), 0))
	}
}

// ends checks that the shipment has ended, once.
func (w world) ends(want OrderShipped) {
	w.t.Helper()
	if len(w.shipped) != 1 {
		w.t.Fatalf("the shipment has ended %d times; dead letters: %v", len(w.shipped), w.DeadLetters())
	}
	if got := <-w.shipped; !reflect.DeepEqual(got, want) {
		w.t.Errorf("%+v, want %+v", got, want)
	}
}

func TestShipmentWaitsForAllParcels(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.send(ShipOrder{Order: "7", Parcels: []string{"a", "b"}}, ParcelDelivered{Parcel: "7/b"})
	if len(w.shipped) > 0 {
		t.Fatal("shipped without a")
	}
	w.send(ParcelDelivered{Parcel: "7/b"}, ParcelDelivered{Parcel: "7/a"})
	w.ends(OrderShipped{Order: "7"})
	w.send(ShipOrder{Order: "7", Parcels: []string{"a"}}) // a late copy
	if _, again, err := w.Instance(t.Context(), Parcels, "7/a", nil); again || err != nil {
		t.Errorf("the order is shipped again: %v", err)
	}
}

func TestShipmentSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.send(ShipOrder{Order: "7", Parcels: []string{"a", "b"}}, ParcelReturned{Parcel: "7/a"},
		ParcelDelivered{Parcel: "7/b"})
	w.ends(OrderShipped{Order: "7", Lost: []string{"7/a"}})
}

func TestShipmentOfNothingEnds(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.send(ShipOrder{Order: "7"})
	w.ends(OrderShipped{Order: "7"})
}

// A shipment ends in time, and its parcels with it. Their later messages have no effect.
func TestShipmentEndsWithoutItsParcels(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.send(ShipOrder{Order: "7", Parcels: []string{"a", "b"}}, ParcelDelivered{Parcel: "7/a"})
	must(t, w.Advance(t.Context(), arriveWithin))
	w.ends(OrderShipped{Order: "7", Lost: []string{"7/b"}})
	if _, open, err := w.Instance(t.Context(), Parcels, "7/b", nil); open || err != nil {
		t.Errorf("the parcel is under way: %v", err)
	}
	w.send(ParcelDelivered{Parcel: "7/b"})
	if len(w.shipped) > 0 || len(w.DeadLetters()) > 0 {
		t.Errorf("%d ends more, and dead letters %v", len(w.shipped), w.DeadLetters())
	}
}
