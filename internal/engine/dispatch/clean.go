package dispatch

import (
	"context"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

const (
	cleanRows = 1000 // deleted by one statement
	cleanMost = 100  // statements in a row
)

// cleaner deletes runs that ended long ago, with their attempts. Every server runs one; they do not wait for each
// other, and deleting a run that is gone is no error. Dead runs are kept until an operator acts.
type cleaner struct{ *core }

// run cleans up at intervals until ctx ends.
func (c *cleaner) run(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(c.options.Clean)) == nil {
		if err := c.cleanOnce(ctx); err != nil && ctx.Err() == nil {
			c.calm.Warn("edda: old runs were not deleted", "error", err)
		}
	}
	return nil
}

func (c *cleaner) cleanOnce(ctx context.Context) error {
	for range cleanMost {
		deleted, err := c.cleanSome(ctx)
		if err != nil || deleted < cleanRows {
			return err
		}
	}
	return nil
}

func (c *cleaner) cleanSome(ctx context.Context) (deleted int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		c.queueOpen(b, cycleLimits)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, c.sql.Get("clean"), c.options.Retention.Microseconds(), cleanRows)
		deleted = tag.RowsAffected()
		return err
	})
	return deleted, err
}
