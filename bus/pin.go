package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pin"
	"github.com/edda-go/edda/internal/run"
)

const pinLease = "pin"

// watchPin looks once a minute, and warns of a pin that it finds for the second time.
func (b *Bus) watchPin(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(b.cleaner.look)) == nil {
		b.lookForPin(ctx)
	}
	return nil
}

// lookForPin warns when the last look, a minute ago, found the same. Of the processes of a cluster, which all find it,
// one says so. A transaction that was begun long ago may look at a snapshot of this moment, so its time alone proves
// nothing.
func (b *Bus) lookForPin(ctx context.Context) {
	c := b.cleaner
	p, suffers, err := c.pins.Find(ctx, b.pool)
	if err != nil && ctx.Err() == nil {
		b.calm.Warn("edda: what keeps dead rows was not looked for", "error", err)
	}
	if !suffers {
		c.pin = pin.Pin{}
		return
	}
	if p.Kind != c.pin.Kind || p.Name != c.pin.Name || p.XID != c.pin.XID {
		c.pin, c.pinned = p, time.Now()
		return
	}
	bid := lease.Bid{Name: pinLease, Holder: c.holder, Lease: pin.Long}
	_, ours, err := b.leases.Acquire(ctx, b.pool.Writing(), bid)
	if ours || err != nil {
		held := max(p.Held, time.Since(c.pinned)).Round(time.Second)
		b.log.Warn("edda: dead rows cannot be removed", "holder", p.Holder(), "held", held,
			"transactions", p.Transactions, "table", p.Table, "endpoint", p.Endpoint, "dead_rows", p.DeadRows,
			"remedy", p.Remedy())
	}
}
