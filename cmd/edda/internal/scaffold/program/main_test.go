package main

import (
	"context"
	"os"
	"testing"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// The endpoints together: an order requests its money, the payments answer, and it is paid.
func TestEndpointsPayAnOrder(t *testing.T) {
	b, err := bus.New(eddatest.Pool(t), bus.Options{}) // a database of this test's own
	if err != nil {
		t.Fatal(err)
	}
	start(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), payWithin/2)
	defer cancel()
	if _, err := b.Send(ctx, PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	var order Order
	for seen, err := range b.Watch(ctx, Orders, "7", bus.WatchCursor{}) { // until it is complete
		if err == nil && seen.Status != bus.InstanceAbsent {
			err = seen.Into(&order)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if order.Receipt == "" {
		t.Errorf("the order is not paid: %+v", order)
	}
}

// start runs the endpoints until the test ends.
func start(t *testing.T, b *bus.Bus) {
	t.Helper()
	runners, err := endpoints(b)
	if err != nil {
		t.Fatal(err)
	}
	host, err := edda.NewHost(runners...)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
