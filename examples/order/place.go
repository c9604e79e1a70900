package main

import (
	"context"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

const (
	ticks = 20 // of a second, so that orders come evenly
	cents = 1999
)

// place places n orders by calls of some, so many a second.
func place(ctx context.Context, some func(ctx context.Context, first, last int) error, n, perSecond int) error {
	begun := time.Now()
	for placed, tick := 0, 1; placed < n; tick++ {
		until := min(n, tick*perSecond/ticks)
		if err := some(ctx, placed, until); err != nil {
			return err
		}
		placed = until
		if err := run.Sleep(ctx, time.Until(begun.Add(time.Duration(tick)*time.Second/ticks))); err != nil {
			return err
		}
	}
	return nil
}

// placeSome places the orders from the first to the one before the last in the shop's own transaction. The row of an
// order and the event that starts its saga commit together.
func placeSome(ctx context.Context, b *bus.Bus, first, last int) error {
	return b.InTx(ctx, func(tx pgx.Tx) error {
		for order := first; order < last; order++ {
			if err := (tables{tx}).write(ctx, entry{aPlaced, order, cents}); err != nil {
				return err
			}
			if _, err := b.PublishTx(ctx, tx, placedNow(order)); err != nil {
				return err
			}
		}
		return nil
	})
}

func placedNow(order int) OrderPlaced { return OrderPlaced{Order: order, Cents: cents, Goods: "a hat"} }
