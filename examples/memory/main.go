package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
)

// sender is the interface for code that sends. *bus.Bus and *memory.Bus implement it.
type sender interface {
	Send(ctx context.Context, m saga.Message, options ...saga.SendOption) (saga.Sent, error)
}

func placeOrder(ctx context.Context, s sender) error {
	_, err := s.Send(ctx, PlaceOrder{Order: time.Now().Format("15:04:05"), Cents: 1990})
	return err
}

func runInMemory(ctx context.Context, l *ledger) error {
	b, err := memory.New(memory.Options{})
	if err != nil {
		return err
	}
	_, err1 := memory.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	_, err2 := memory.NewEndpoint(b, "accounts", bus.EndpointOptions{}, bus.Handle(l.book))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	stop, err := b.Start(ctx)
	if err != nil {
		return err
	}
	if err := placeOrder(ctx, b); err != nil {
		return errors.Join(err, stop())
	}
	<-ctx.Done()
	return stop()
}

func runOnPostgres(ctx context.Context) error {
	pool, err := eddadev.Connect(ctx, "memory")
	if err != nil {
		return err
	}
	defer pool.Close()
	const tables = "CREATE TABLE IF NOT EXISTS booking (order_id text PRIMARY KEY, cents int NOT NULL)"
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	orders, err1 := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	accounts, err2 := bus.NewEndpoint(b, "accounts", bus.EndpointOptions{}, bus.HandleTx(bookInTable))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	customer := edda.RunnerFunc(func(ctx context.Context) error { return placeOrder(ctx, b) })
	return eddadev.Run(ctx, b, orders, accounts, customer)
}

func main() {
	postgres := flag.Bool("postgres", false, "run on a database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := error(nil)
	if *postgres {
		err = runOnPostgres(ctx)
	} else {
		err = runInMemory(ctx, &ledger{cents: map[string]int{}})
	}
	if err != nil {
		log.Fatal(err)
	}
}
