package dispatch

import (
	"context"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

// refuse delays a run whose message could not be sent, or makes it dead. A transient error of the database does not
// count. A different server may have sent the message in the meantime.
func (d *dispatcher) refuse(ctx context.Context, c claim, why error) error {
	dead, count := false, 1
	if pgerr.Code(why) != "" && Passing(why) {
		count = 0
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		d.queueOpen(b, cycleLimits)
		b.Queue(d.sql.Get("refuse"), c.id, c.attempt, c.refused, storable(why), d.options.MaxDispatchAttempts,
			d.pace.first.Microseconds(), d.pace.most.Microseconds(), count).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&dead}, func() error { return nil })
			return err
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil || !dead {
			return err
		}
		b = &pgx.Batch{}
		b.Queue(d.sql.Get("lock_manifest_of"), c.id)
		b.Queue(d.sql.Get("died"), c.id)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("put back run %s of %s: %w", c.id, c.manifest, err)
	}
	d.log.Warn("edda: the message of a run could not be sent", "manifest", c.manifest, "run", c.id, "times",
		c.refused+count, "dead", dead, "error", why)
	return nil
}

const mostError = 4096 // bytes of an error that is stored

// storable returns the text of an error without bytes that Postgres cannot store. The Error method of a user's error
// may panic, which fmt turns into a text.
func storable(err error) string {
	text := fmt.Sprint(err)
	if len(text) > mostError {
		text = text[:mostError]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}
