package bus

import (
	"context"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// write is the second trip: everything that follows from which instances won, in one pipeline with the COMMIT.
func (b *batch) write(ctx context.Context) error {
	// one list for all that is sent and for its check, even when it is forgotten meanwhile
	known, err := b.ep.bus.routes.Get(ctx, b.conn)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	b.shared.ownPlanner(pipeline)
	if b.shared.hurried {
		pipeline.Queue(ownLockTimeout)
	}
	if b.save != nil {
		b.save.QueueChanges(pipeline)
		if err := b.save.Err(); err != nil {
			return err
		}
	}
	if err := b.ep.strategy.queue(b, pipeline, known); err != nil {
		return err
	}
	if !b.entered.IsZero() {
		b.also = b.queueLedger
	}
	if err := b.effects.commit(ctx, pipeline, known); err != nil {
		return err
	}
	b.entered = saga.ID{}
	return nil
}

// ownLockTimeout takes back what handlers that share a transaction have: nothing of ours is waited for from here on,
// but Postgres locks a table for the moment in which it grows, and on a busy disk that is no reason to lose a batch.
const ownLockTimeout = "set local lock_timeout to default"
