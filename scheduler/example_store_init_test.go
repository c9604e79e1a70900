package scheduler_test

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
)

// The parts that the examples of schedules leave out: a Postgres with the tables of Edda, and a message.
var check, openPool, start = pgtest.Must, pgtest.Example, pgtest.Start

type Settle struct {
	Currency string `json:"currency"`
}

func (Settle) Kind() string { return "settlement.start" }

// runFailed receives an event for each failed attempt of a run.
var runFailed = make(chan event.RunFailed, 10)

// openBooks runs an endpoint that handles settlements with settle.
func openBooks(settle func(*bus.Context, Settle) error) (ctx context.Context, b *bus.Bus, end func()) {
	ctx, pool, drop := openPool()
	b, err := bus.New(pool, bus.Options{Events: func(e event.Event) {
		if e, ok := e.(event.RunFailed); ok {
			runFailed <- e
		}
	}})
	check(err)
	books, err := bus.NewEndpoint(b, "books", bus.EndpointOptions{}, bus.Handle(settle))
	check(err)
	stop := start(ctx, books)
	return ctx, b, func() {
		stop()
		drop()
	}
}

// openStore opens a Store with a manifest, and without a scheduler that fires it.
func openStore() (ctx context.Context, store *scheduler.Store, end func()) {
	ctx, pool, end := openPool()
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{})
	check(err)
	check(store.Put(ctx, scheduler.Manifest{Name: "settlement", When: scheduler.Cron("30 2 * * *", "Europe/Oslo"),
		Message: Settle{Currency: "NOK"}}))
	return ctx, store, end
}
