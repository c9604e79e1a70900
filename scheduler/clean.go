package scheduler

import (
	"context"

	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

const (
	cleanRows = 1000 // deleted by one statement
	cleanMost = 100  // statements in a row
)

// clean deletes runs that ended long ago, with their attempts, now and then. Every server does it; nobody waits for
// anybody, and to delete what is gone is no error. Runs that are dead are kept until somebody acts.
func (s *Scheduler) clean(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(s.options.Clean)) == nil {
		if err := s.cleanOnce(ctx); err != nil && ctx.Err() == nil {
			s.calm.Warn("edda: old runs were not deleted", "error", err)
		}
	}
	return nil
}

func (s *Scheduler) cleanOnce(ctx context.Context) error {
	for range cleanMost {
		deleted, err := s.cleanSome(ctx)
		if err != nil || deleted < cleanRows {
			return err
		}
	}
	return nil
}

func (s *Scheduler) cleanSome(ctx context.Context) (deleted int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		s.queueOpen(b, cycleLimits)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, s.sql.Get("clean"), s.options.Retention.Microseconds(), cleanRows)
		deleted = tag.RowsAffected()
		return err
	})
	return deleted, err
}
