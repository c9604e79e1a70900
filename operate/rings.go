package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/jackc/pgx/v5"
)

// Ring describes four tables, its slots, whose rows are kept for a time and deleted table by table: inbox (ids of
// messages that came from other systems), outbox (copies of messages that were relayed to them) or history.
type Ring struct {
	Name  string
	Slot  int           // 0 to 3: the slot that is being written
	Keep  time.Duration // minimum retention of rows, at most a third longer; shorter if the tables grow to Most
	Most  int64         // maximum size of the tables in bytes; 0 is no limit
	Bytes int64         // present size of the tables
	Since time.Time     // the last rotation, by the database's clock
}

// Rings returns all rings.
func (o *Operator) Rings(ctx context.Context) ([]Ring, error) {
	found, err := o.rings.List(ctx, o.pool)
	rings := make([]Ring, len(found))
	for n, r := range found {
		rings[n] = Ring{Name: string(r.Ring), Slot: r.Slot, Keep: r.Keep, Most: r.Most, Bytes: r.Bytes, Since: r.Since}
	}
	return rings, err
}

// SetKeep sets how long the rows of a ring are kept, one minute to ten years, and the maximum size of its tables in
// bytes, with their indexes: 1 MiB or more, and 0 is no limit. A keep of 0, or a negative most, leaves that setting
// unchanged. If the tables grow beyond most, the oldest rows are deleted before their time. Processes check once a
// minute, so the tables may exceed most by the rows of one minute.
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

// ringState returns the settings of a ring for the audit.
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
