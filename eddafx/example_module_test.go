package eddafx_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddafx"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"go.uber.org/fx"
)

// Module puts a bus into the graph, made with the graph's pool. Endpoints run as long as the app.
func ExampleModule() {
	ctx, pool, end := pgtest.Example() // a pgxpool.Pool, which a program provides by a constructor
	defer end()
	read := make(chan string)
	handle := func(_ *bus.Context, _ pgx.Tx, m rateRead) error {
		read <- m.Currency
		return nil
	}
	var b *bus.Bus
	app := fx.New(fx.NopLogger, fx.Supply(pool),
		eddafx.Module(bus.Options{AutoInstall: true}),
		eddafx.Endpoint("rates", bus.EndpointOptions{}, bus.HandleTx(handle)),
		fx.Populate(&b))
	pgtest.Must(app.Start(ctx))
	_, err := b.Send(ctx, rateRead{Currency: "NOK"})
	pgtest.Must(err)
	fmt.Println(<-read)
	pgtest.Must(app.Stop(context.WithoutCancel(ctx)))
	// Output: NOK
}
