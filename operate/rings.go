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

// SetKeep sets how long the rows of a ring stay: one minute to ten years.
func (o *Operator) SetKeep(ctx context.Context, name string, keep time.Duration) error {
	return o.rings.SetKeep(ctx, pg.Committed(o.pool.Pool), ring.Name(name), keep)
}

// SetMost sets how many bytes the tables of a ring may have, with their indexes: 1 MiB or more, and 0 is no limit. When
// the tables grow beyond it, the oldest rows go before their time. Processes look once a minute, so what is written
// within a minute may come on top.
func (o *Operator) SetMost(ctx context.Context, name string, bytes int64) error {
	return o.rings.SetMost(ctx, pg.Committed(o.pool.Pool), ring.Name(name), bytes)
}
