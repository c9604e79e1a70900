package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/saga"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run runs the shop until ctx ends, and places or cancels these orders.
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

// customer places the orders, and cancels those with a minus. It is no part of the shop: in part 6 a web handler places
// the orders.
func customer(b *bus.Bus, numbers []string) edda.Runner {
	return edda.RunnerFunc(func(ctx context.Context) error {
		for _, number := range numbers {
			var m saga.Message = PlaceOrder{Order: number, Cents: 1990}
			if order, cancels := strings.CutPrefix(number, "-"); cancels {
				m = CancelOrder{Order: order}
			}
			if _, err := b.Send(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
}
