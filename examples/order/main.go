package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/examples/order/shop"
)

const payWithin = 10 * time.Second // how long an order waits for its money

// run runs the shop. It creates the tables if they do not exist, and continues with the orders of earlier runs.
func run(ctx context.Context) error {
	pool, err := eddadev.Connect(ctx, "order")
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, shop.Tables); err != nil {
		return err
	}
	var next int
	if err := pool.QueryRow(ctx, "SELECT coalesce(max(order_id), 0) + 1 FROM placed").Scan(&next); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	runners, err := shop.Endpoints(b, payWithin)
	if err != nil {
		return err
	}
	customers := edda.RunnerFunc(func(ctx context.Context) error {
		for tick := time.NewTicker(time.Second); ; next++ {
			if err := shop.Place(ctx, b, next, next+1); err != nil {
				return err
			}
			log.Printf("order %d is placed", next)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	return eddadev.Run(ctx, b, append(runners, customers)...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
