package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Resender puts dead letters back into the queues of their endpoints, in tx: with their ids, headers and bodies, due
// now in the order given, and with the attempts reset. It writes all of them or nothing. It returns ErrUndeliverable,
// wrapped, if a queue does not exist.
//
// If a Resender has a method Wake(ctx, endpoints...), it is called after the commit, to wake the workers of the
// endpoints.
type Resender interface {
	Resend(ctx context.Context, tx pgx.Tx, letters ...recoverability.Letter) error
}

// wake calls r.Wake if r has it.
func wake(ctx context.Context, r Resender, endpoints ...string) {
	if w, ok := r.(interface {
		Wake(ctx context.Context, endpoints ...string)
	}); ok && len(endpoints) > 0 {
		w.Wake(ctx, endpoints...)
	}
}

// Retry removes a dead letter and puts its message back into its queue, in one transaction. Of several concurrent
// callers one succeeds and the others get ErrNotFound; if the first fails, a later one succeeds. A letter from a
// foreign system may be larger than a queue allows (body 16 MiB, header 2 MiB, kind 255 bytes): the error is
// saga.ErrTooLarge. If the endpoint has no queue, the error is ErrUndeliverable.
func (s *Store) Retry(ctx context.Context, db Beginner, r Resender, number int64) error {
	return s.RetryTo(ctx, db, r, number, "")
}

// RetryTo is Retry to a different endpoint; "" is the letter's own. If the endpoint has no queue, the error is
// ErrUndeliverable.
func (s *Store) RetryTo(ctx context.Context, db Beginner, r Resender, number int64, endpoint string) error {
	err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error {
		l, err := s.takeOne(ctx, tx, number)
		if err != nil {
			return err
		}
		if err := letter(l).fits(); err != nil {
			return err
		}
		c := letter(l).changed("dead.retry")
		if endpoint != "" && endpoint != l.Endpoint {
			c.After = map[string]any{"endpoint": Storable(endpoint)}
		}
		endpoint = cmp.Or(endpoint, l.Endpoint)
		l.Endpoint = endpoint
		if err := r.Resend(ctx, tx, l); err != nil {
			return err
		}
		return s.audit.Add(ctx, tx, c)
	})
	if err != nil {
		return fmt.Errorf("retry dead letter %d: %w", number, err)
	}
	wake(ctx, r, endpoint)
	return nil
}

// letter is a Letter with the operations of this package.
type letter recoverability.Letter

// changed returns the audit entry of an operation on l.
func (l letter) changed(verb string) audit.Change {
	return audit.Change{Verb: verb, Target: strconv.FormatInt(l.Number, 10), Before: map[string]any{
		"endpoint": l.Endpoint, "message_id": l.MessageID, "kind": pg.Storable(l.Kind, mostKind)}}
}

const mostKind = 255 // bytes, by a constraint of a queue's table

// fits returns an error if the letter is too large for a queue, as a row that was written by hand may be.
func (l letter) fits() error {
	for _, part := range []struct {
		what       string
		size, most int
	}{{"kind", len(l.Kind), mostKind}, {"header", len(l.Header), wire.MostHeader},
		{"body", len(l.Body), wire.MostBody}} {
		if part.size > part.most {
			return fmt.Errorf("its %s has %d bytes, limit %d: %w", part.what, part.size, part.most,
				saga.ErrTooLarge)
		}
	}
	return nil
}

// takeOne removes a dead letter and returns it. The second of two callers gets ErrNotFound.
func (s *Store) takeOne(ctx context.Context, tx pgx.Tx, number int64) (recoverability.Letter, error) {
	return one(ctx, tx, s.sql.Get("take"), number)
}

// committed sets READ COMMITTED, because a database may have a different default. There the second caller would get
// an error of Postgres instead of finding no row.
var committed = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}

// Discard removes a dead letter and records the reason; the body is deleted. The error is ErrNotFound as for Retry.
func (s *Store) Discard(ctx context.Context, db Beginner, number int64, reason string) error {
	err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.sql.Get("discard"), pg.Planned, number, Storable(reason))
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return s.audit.Add(ctx, tx, audit.Change{Verb: "dead.discard", Target: strconv.FormatInt(number, 10),
			Reason: reason})
	})
	if err != nil {
		return fmt.Errorf("discard dead letter %d: %w", number, err)
	}
	return nil
}

// PruneJobs deletes at most limit jobs that ended more than olderThan ago by the database's clock, and at most limit
// records of letters that such jobs have sent. It returns the number of deleted rows.
func (s *Store) PruneJobs(ctx context.Context, db Execer, olderThan time.Duration, limit int) (n int64, err error) {
	for _, sql := range []string{s.sql.Get("prune_sent"), s.sql.Get("prune_jobs")} {
		tag, err := db.Exec(ctx, sql, pg.Planned, olderThan.Seconds(), limit)
		if err != nil {
			return n, fmt.Errorf("prune jobs of dead letters: %w", err)
		}
		n += tag.RowsAffected()
	}
	return n, nil
}

// Prune deletes at most limit rows of discarded that are older than olderThan by the database's clock, and returns
// their number. Dead letters are never pruned: each waits for a decision.
func (s *Store) Prune(ctx context.Context, db Execer, olderThan time.Duration, limit int) (int64, error) {
	// Planned on each call: a plan that was cached while the table was empty would read the whole table.
	tag, err := db.Exec(ctx, s.sql.Get("prune_discarded"), pg.Planned, olderThan.Seconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("prune discarded messages: %w", err)
	}
	return tag.RowsAffected(), nil
}
