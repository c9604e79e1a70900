package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/ring"
)

// Ring describes tables whose rows are kept for a time and then deleted all at once: inbox (ids of messages that came
// from other systems), outbox (copies of messages that were relayed to them) and history.
type Ring struct {
	Name  string
	Slot  int           // 0 to 3, that is written into
	Keep  time.Duration // how long rows stay at least, unless the tables grow to Most; at most a third longer
	Most  int64         // bytes that the tables may have, 0 is no limit
	Bytes int64         // that they have
	Since time.Time     // of the last rotation, by the database's clock
}

// Rings describes all rings.
func (o *Operator) Rings(ctx context.Context) ([]Ring, error) {
	found, err := o.rings.List(ctx, o.pool)
	rings := make([]Ring, len(found))
	for n, r := range found {
		rings[n] = Ring{Name: string(r.Ring), Slot: r.Slot, Keep: r.Keep, Most: r.Most, Bytes: r.Bytes, Since: r.Since}
	}
	return rings, err
}

// SetKeep sets how long the rows of a ring stay, one minute to ten years, and how many bytes its tables may have, with
// their indexes: 1 MiB or more, and 0 is no limit. A keep of 0, and a negative most, leave what is set. When the tables
// grow beyond most, the oldest rows go before their time. Processes look once a minute, so what is written within a
// minute may come on top.
func (o *Operator) SetKeep(ctx context.Context, name string, keep time.Duration, most int64) error {
	pool := pg.Committed(o.pool.Pool)
	if keep != 0 {
		if err := o.rings.SetKeep(ctx, pool, ring.Name(name), keep); err != nil {
			return err
		}
	}
	if most < 0 {
		return nil
	}
	return o.rings.SetMost(ctx, pool, ring.Name(name), most)
}
