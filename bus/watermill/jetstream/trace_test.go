package jetstream_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type paid struct{}

func (paid) Kind() string { return "order.paid" }

// database returns a bus of a new schema.
func (w *world) database(o bus.Options) *bus.Bus {
	w.Helper()
	pool := pgdev.Pool(w)
	o.Schema, o.AutoInstall, o.Logger = pgdev.Schema(w), true, slog.New(slog.DiscardHandler)
	pgtest.Migrate(w, pool, o.Schema)
	b, err := bus.New(pool, o)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// run runs r until the end of the test.
func (w *world) run(r interface {
	Run(ctx context.Context) error
}, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	w.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	}))
}

// The context of a trace crosses a relay, the stream and an intake unchanged, and no hook of the other side changes it.
func TestTraceCrossesTheBroker(t *testing.T) {
	w := newWorld(t)
	w.stream("shop")
	own := map[string]string{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"tracestate":  "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "baggage": "customer=7,region=north%20west",
	}
	there := w.database(bus.Options{Outgoing: func(_ context.Context, i *saga.Info) {
		for name := range own {
			i.AddHeader(name, "of the other side")
		}
	}})
	here := w.database(bus.Options{Outgoing: func(_ context.Context, i *saga.Info) {
		for name, value := range own {
			i.AddHeader(name, value)
		}
	}})
	got := make(chan saga.Info, 1)
	billing, err := bus.NewEndpoint(there, "billing", bus.EndpointOptions{},
		bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ paid) error { got <- c.Info(); return nil }))
	if err == nil {
		err = billing.Install(t.Context())
	}
	w.run(billing, err)
	relay, err := watermill.NewRelay(here, "shop", w.publisher(jetstream.PublisherOptions{}), watermill.RelayOptions{},
		paid{}.Kind())
	if err == nil {
		err = relay.Install(t.Context())
	}
	w.run(relay, err)
	subscriber, err := jetstream.NewSubscriber(w.conn, jetstream.SubscriberOptions{Stream: "shop",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.run(watermill.NewIntake(there, "shop", subscriber, watermill.IntakeOptions{Endpoint: "billing"}))
	if _, err := here.Send(t.Context(), paid{}); err != nil {
		t.Fatal(err)
	}
	select {
	case i := <-got:
		for name, want := range own {
			if have := i.Header(name); have != want {
				t.Errorf("%s is %q on the other side, want %q", name, have, want)
			}
		}
	case <-time.After(soon):
		t.Fatal("no message came to the other side")
	}
}
