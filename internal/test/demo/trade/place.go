package trade

import (
	"context"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/order/shop"
	"github.com/edda-go/edda/internal/base/run"
)

const ticks = 20 // of a second, so that orders come evenly

// place places n orders, perSecond a second.
func place(ctx context.Context, b *bus.Bus, n, perSecond int) error {
	begun := time.Now()
	for placed, tick := 0, 1; placed < n; tick++ {
		until := min(n, tick*perSecond/ticks)
		if err := shop.Place(ctx, b, placed, until); err != nil {
			return err
		}
		placed = until
		if err := run.Sleep(ctx, time.Until(begun.Add(time.Duration(tick)*time.Second/ticks))); err != nil {
			return err
		}
	}
	return nil
}
