package batch

import (
	"context"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// write is the second trip: it writes everything that depends on which instances won, in one pipeline with the
// COMMIT.
func (b *batch) write(ctx context.Context) error {
	// one list of routes for all sends and for their check, even if the cache is cleared in between
	known, err := b.engine.To.Routes.Get(ctx, b.in.Conn)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	b.shared.ownPlanner(pipeline)
	if b.shared.hurried {
		pipeline.Queue(ownLockTimeout)
	}
	if b.saver.later != nil {
		b.saver.later.QueueChanges(pipeline)
		if err := b.saver.later.Err(); err != nil {
			return err
		}
	}
	if err := b.engine.Strategy.queue(b, pipeline, known); err != nil {
		return err
	}
	if !b.journal.entered.IsZero() {
		b.effects.QueueAlso(b.journal.queueLeave)
	}
	if err := b.effects.Commit(ctx, pipeline, known); err != nil {
		return err
	}
	b.journal.entered = saga.ID{}
	return nil
}

// ownLockTimeout resets the lock_timeout of handlers that share a transaction: our own statements wait for no lock
// from here on, but Postgres locks a table while it grows, and on a busy disk that is no reason to lose a batch.
const ownLockTimeout = "set local lock_timeout to default"
