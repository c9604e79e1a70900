package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run runs the shop until ctx ends, and places an order for each of these numbers.
func run(ctx context.Context, numbers []string) error {
	pool, err := eddadev.Connect(ctx, "shop") // DATABASE_URL, or a Postgres that it starts
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	runners, err := shop(b)
	if err != nil {
		return err
	}
	return eddadev.Run(ctx, b, append(runners, customer(b, numbers))...)
}

// customer places the orders. It is no part of the shop: in part 6 a web handler does this.
func customer(b *bus.Bus, numbers []string) edda.Runner {
	return edda.RunnerFunc(func(ctx context.Context) error {
		for _, number := range numbers {
			if _, err := b.Send(ctx, PlaceOrder{Order: number, Cents: 1990}); err != nil {
				return err
			}
		}
		return nil
	})
}
