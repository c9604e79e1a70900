package shop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/internal/base/run"
)

// Buyers place orders, so many a second, each in a transaction of its own that also writes the order's row. When one
// fails, as it does while the database is away, the buyer is told so. Whether the order was placed all the same is for
// the table to say.
type Buyers struct {
	Counter *orders.Service
	Random  *rand.Rand
	Rate    int          // orders a second
	Turned  atomic.Int64 // buyers who got an error
}

// Run places orders until ctx ends.
func (b *Buyers) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second / time.Duration(b.Rate))
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := b.place(context.WithoutCancel(ctx), n); err != nil {
			b.Turned.Add(1)
			_ = run.Sleep(ctx, 50*time.Millisecond)
		}
	}
}

func (b *Buyers) place(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	o := orders.PlaceOrder{
		OrderID: fmt.Sprintf("order-%d", n),
		Card:    fmt.Sprintf("%016d", b.Random.Int64N(1e16)),
		Cents:   100 + b.Random.Int64N(10_000),
	}
	_, err := b.Counter.Place(ctx, o)
	return err
}
