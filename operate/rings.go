package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/jackc/pgx/v5"
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
	c := audit.Change{Verb: name + ".keep", Target: name}
	return o.inAudit(ctx, &c, func(tx pgx.Tx) (err error) {
		if c.Before, err = o.ringState(ctx, tx, name); err == nil && keep != 0 {
			err = o.rings.SetKeep(ctx, tx, ring.Name(name), keep)
		}
		if err == nil && most >= 0 {
			err = o.rings.SetMost(ctx, tx, ring.Name(name), most)
		}
		if err == nil {
			c.After, err = o.ringState(ctx, tx, name)
		}
		return err
	})
}

// ringState is what the audit tells of a ring.
func (o *Operator) ringState(ctx context.Context, tx pgx.Tx, name string) (map[string]any, error) {
	found, err := o.rings.List(ctx, tx)
	state := map[string]any{}
	for _, r := range found {
		if string(r.Ring) == name {
			state["keep"], state["most_bytes"] = r.Keep.String(), r.Most
		}
	}
	return state, err
}
