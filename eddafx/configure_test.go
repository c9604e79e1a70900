package eddafx_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddafx"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"go.uber.org/fx"
)

// The options of the bus are the options of Module with the changes of Configure.
func TestConfigureChangesTheOptions(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	var b *bus.Bus
	got := make(chan saga.Info, 1)
	// each keeps the hook that was set before
	stamp := func(name, value string) func(o *bus.Options) {
		return func(o *bus.Options) {
			before := o.Outgoing
			o.Outgoing = func(ctx context.Context, i *saga.Info) {
				if before != nil {
					before(ctx, i)
				}
				i.AddHeader(name, value)
			}
		}
	}
	app := build(pool,
		fx.Supply(slog.New(slog.DiscardHandler), "of the graph"),
		eddafx.Configure(stamp("first", "given")),
		eddafx.ConfigureFrom(func(value string) func(*bus.Options) { return stamp("second", value) }),
		eddafx.Module(bus.Options{Schema: migrated(t, pool), AutoInstall: true}),
		eddafx.Endpoint("stock", bus.EndpointOptions{Concurrency: 1},
			bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ reserve) error { got <- c.Info(); return nil })),
		fx.Populate(&b),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), reserve{}); err != nil {
		t.Fatal(err)
	}
	if i := <-got; i.Header("first") != "given" || i.Header("second") != "of the graph" {
		t.Errorf("the message has the headers %q and %q, want those of both functions", i.Header("first"),
			i.Header("second"))
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Errorf("Stop says %v", err)
	}
}
