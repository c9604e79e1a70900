package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
)

// buyers place orders, so many a second, each in a transaction of its own that also writes the order's row. When one
// fails, as it does while the database is away, the buyer is told so. Whether the order was placed all the same is for
// the table to say.
type buyers struct {
	shop   *orders.Service
	random *rand.Rand
	rate   int
	placed func(orders.PlaceOrder, saga.Sent) // is told of each order; nil: nobody
	turned atomic.Int64                       // away, with an error
}

// run places orders until ctx ends.
func (b *buyers) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second / time.Duration(b.rate))
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := b.place(context.WithoutCancel(ctx), n); err != nil {
			b.turned.Add(1)
			_ = run.Sleep(ctx, 50*time.Millisecond)
		}
	}
}

func (b *buyers) place(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	o := orders.PlaceOrder{
		OrderID: fmt.Sprintf("order-%d", n),
		Card:    fmt.Sprintf("%016d", b.random.Int64N(1e16)),
		Cents:   100 + b.random.Int64N(10_000),
	}
	sent, err := b.shop.Place(ctx, o)
	if err == nil && b.placed != nil {
		b.placed(o, sent)
	}
	return err
}
