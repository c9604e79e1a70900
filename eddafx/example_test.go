package eddafx_test

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddafx"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
)

// The messages of the example.
type (
	readRates struct{}
	rateRead  struct{ Currency string }
)

func (readRates) Kind() string { return "rates.read" }
func (rateRead) Kind() string  { return "rate.read" }

// rates is a saga. Each instance counts the readings of one currency.
type rates struct{ Read int }

var ratesSaga = saga.Define("rates", saga.Options{},
	saga.StartedBy(func(m rateRead) string { return m.Currency }, (*rates).read))

func (r *rates) read(*saga.Context, rateRead) error {
	r.Read++
	return nil
}

// reader is a handler with dependencies.
type reader struct{ done chan string }

func newReader() *reader { return &reader{done: make(chan string, 10)} }

func (r *reader) read(ctx *bus.Context, _ pgx.Tx, _ readRates) error {
	ctx.Send(rateRead{Currency: "NOK"})
	r.done <- "manifest " + ctx.Info().Firing.Manifest + " fired"
	return nil
}

// newPool connects to the database of the program, and closes the pool after everything else has stopped.
func newPool(life fx.Lifecycle, dsn string) (*pgxpool.Pool, error) {
	pool, err := pgxpool.New(context.Background(), dsn)
	if err == nil {
		life.Append(fx.StopHook(pool.Close))
	}
	return pool, err
}

// A whole program: a saga, a handler with a dependency, a schedule, and a loop of its own.
func Example() {
	server, err := pgdev.Start(context.Background(), pgdev.Options{Private: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Stop() }()

	var r *reader
	app := fx.New(
		fx.NopLogger,
		fx.Supply(server.DSN()),
		fx.Provide(newPool, newReader),
		eddafx.Module(bus.Options{}),
		eddafx.Migrate(), // in production, run edda migrate before the program
		eddafx.Endpoint("rates", bus.EndpointOptions{}, bus.Saga(ratesSaga)),
		eddafx.EndpointFrom(func(r *reader) eddafx.Spec {
			return eddafx.Spec{Name: "reader", Parts: []bus.Part{bus.HandleTx(r.read)}}
		}),
		eddafx.Scheduler(scheduler.Options{Owner: "shop"},
			scheduler.Manifest{Name: "rates", When: scheduler.Every(5 * time.Minute), Message: readRates{}}),
		eddafx.Runner(newPing),
		fx.Populate(&r),
	)
	if err := app.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-r.done)
	if err := app.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// manifest rates fired
}

// ping is a loop of the program's own.
type ping struct{ pool *pgxpool.Pool }

func newPing(pool *pgxpool.Pool) *ping { return &ping{pool} }

func (p *ping) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := p.pool.Ping(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}
