package scheduler

import (
	"context"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

// refuse lets a run wait whose message could not be sent, or gives it up. What the database said that will pass does
// not count. Another server may have had more luck meanwhile.
func (s *Scheduler) refuse(ctx context.Context, c claim, why error) error {
	dead, count := false, 1
	if pg.Code(why) != "" && passing(why) {
		count = 0
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		s.queueOpen(b, cycleLimits)
		b.Queue(s.sql.Get("refuse"), c.id, c.attempt, c.refused, storable(why), s.options.MaxDispatchAttempts,
			s.pace.first.Microseconds(), s.pace.most.Microseconds(), count).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&dead}, func() error { return nil })
			return err
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil || !dead {
			return err
		}
		b = &pgx.Batch{}
		b.Queue(s.sql.Get("lock_manifest_of"), c.id)
		b.Queue(s.sql.Get("died"), c.id)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("put back run %s of %s: %w", c.id, c.manifest, err)
	}
	s.log.Warn("edda: the message of a run could not be sent", "manifest", c.manifest, "run", c.id, "times",
		c.refused+count, "dead", dead, "error", why)
	return nil
}

const mostError = 4096 // bytes of an error that is stored

// storable is what Postgres can hold of an error's text.
func storable(err error) string {
	text := err.Error()
	if len(text) > mostError {
		text = text[:mostError]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}
