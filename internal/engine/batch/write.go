package batch

import (
	"context"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// write is the second trip: everything that follows from which instances won, in one pipeline with the COMMIT.
func (b *batch) write(ctx context.Context) error {
	// one list for all that is sent and for its check, even when it is forgotten meanwhile
	known, err := b.engine.To.Routes.Get(ctx, b.in.Conn)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	b.shared.ownPlanner(pipeline)
	if b.shared.hurried {
		pipeline.Queue(ownLockTimeout)
	}
	if b.effects.Save != nil {
		b.effects.Save.QueueChanges(pipeline)
		if err := b.effects.Save.Err(); err != nil {
			return err
		}
	}
	if err := b.engine.Strategy.queue(b, pipeline, known); err != nil {
		return err
	}
	if !b.journal.entered.IsZero() {
		b.effects.Also = b.journal.queueLeave
	}
	if err := b.effects.Commit(ctx, pipeline, known); err != nil {
		return err
	}
	b.journal.entered = saga.ID{}
	return nil
}

// ownLockTimeout takes back what handlers that share a transaction have: nothing of ours is waited for from here on,
// but Postgres locks a table for the moment in which it grows, and on a busy disk that is no reason to lose a batch.
const ownLockTimeout = "set local lock_timeout to default"
