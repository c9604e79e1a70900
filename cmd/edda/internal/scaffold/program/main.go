package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run runs the program until ctx ends.
func run(ctx context.Context) error {
	pool, err := eddadev.Connect(ctx, "program") // DATABASE_URL, or a private Postgres
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	runners, err := endpoints(b)
	if err != nil {
		return err
	}
	return eddadev.Run(ctx, b, append(runners, customer(b))...) // also makes the tables and serves the pages
}

// endpoints returns the queues of the program, each with its handlers.
func endpoints(b *bus.Bus) ([]edda.Runner, error) {
	orders, err1 := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	payments, err2 := bus.NewEndpoint(b, "payments", bus.EndpointOptions{}, bus.Handle(chargeCard))
	return []edda.Runner{orders, payments}, errors.Join(err1, err2)
}

// customer places one order. In a real program this is a web handler.
func customer(b *bus.Bus) edda.Runner {
	return edda.RunnerFunc(func(ctx context.Context) error {
		_, err := b.Send(ctx, PlaceOrder{Order: time.Now().Format("15:04:05"), Cents: 1990})
		return err
	})
}
