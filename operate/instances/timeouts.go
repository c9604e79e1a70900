package instances

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// dropTimeouts deletes the messages of timeouts, wherever they wait. One that a worker has locked stays: its instance
// does not list it any more, so the worker discards it.
func (c *change) dropTimeouts(ctx context.Context, gone ...saga.Pending) error {
	if len(gone) == 0 {
		return nil
	}
	known, err := c.routes.SeenBy(ctx, c.tx)
	if err != nil {
		return err
	}
	due, id := pg.Timestamps(), pg.UUIDs()
	for _, p := range gone {
		due.Time(p.Due)
		id.UUID(p.ID)
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(c.sql.Get("by_index"))
	for _, q := range known.ByID {
		if !q.Relay {
			pipeline.Queue(q.SQL("delete_timeouts"), due, id)
		}
	}
	if err := c.tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("delete its timeouts: %w", err)
	}
	return nil
}
