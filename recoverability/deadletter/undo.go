package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// keepSent keeps what UndoJob needs of letters that the job has sent, which name the endpoint that they were sent to;
// from are the endpoints in which they died.
func (st *step) keepSent(ctx context.Context, tx pgx.Tx, letters []Letter, from map[int64]string) error {
	var (
		number                                   []int64
		endpoint, target, id, reason, why, group []string
		attempts, conflicts                      []int
		sent, failed                             []*time.Time
		died                                     []time.Time
	)
	for n := range letters {
		l := &letters[n]
		number, target = append(number, l.Number), append(target, l.Endpoint)
		endpoint = append(endpoint, from[l.Number])
		id, reason, why = append(id, l.MessageID.String()), append(reason, l.Reason), append(why, l.Error)
		attempts, conflicts = append(attempts, l.Attempts), append(conflicts, l.Conflicts)
		sent, failed = append(sent, known(l.Sent)), append(failed, known(l.FirstFailed))
		died, group = append(died, l.Died), append(group, l.Group)
	}
	_, err := tx.Exec(ctx, st.store.sql.Get("keep_sent"), pg.Planned, st.job.Number, number, endpoint, target, id,
		attempts, conflicts, reason, why, sent, failed, died, group)
	return err
}

// known is null for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Undone is what UndoJob has done.
type Undone struct {
	Returned int64 // letters that are dead letters again
	Handled  int64 // left as they are: handled, tried (so that they may be dead again), moved, retried again or in hand
}

const undoLetters = 100 // of one transaction

// UndoJob takes back what a job that retries has sent: each message that still waits in its queue, and that nobody has
// tried yet, is a dead letter again as it was, with its number. A job that is open or paused is cancelled first. It
// works in steps as RunJob does, so what is interrupted may be called again. What a job has sent is known for 30 days
// after its end. The error is ErrNoJob if no job that retries has this number. A job with a Patch is not undone.
func (s *Store) UndoJob(ctx context.Context, db Beginner, number int64) (done Undone, err error) {
	u := undoing{s, db, number}
	if err = u.stop(ctx); err == nil {
		done, err = u.run(ctx)
	}
	if err != nil {
		return done, fmt.Errorf("undo job %d: %w", number, err)
	}
	return done, nil
}

// undoing takes a job back.
type undoing struct {
	*Store
	db     Beginner
	number int64
}

// stop cancels the job.
func (u *undoing) stop(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, u.db, committed, func(tx pgx.Tx) error {
		var (
			action        Action
			ended, undone int64
			changed       bool
		)
		err := tx.QueryRow(ctx, u.sql.Get("stop_job"), pg.Planned, u.number).Scan(&action, &ended, &undone, &changed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoJob
		case err != nil:
			return err
		case action != ActionRetry:
			return fmt.Errorf("%w that retries: nothing brings back what was discarded", ErrNoJob)
		case changed:
			return errors.New("it has changed its letters, and dead_letter_edit has what they were")
		}
		c := jobChange("dead.undo", u.number, "", nil)
		c.Before = map[string]int64{"ended": ended, "undone": undone}
		return u.audit.Add(ctx, tx, c)
	})
}

// run takes back the letters of the job.
func (u *undoing) run(ctx context.Context) (done Undone, err error) {
	for after, looked := int64(0), int64(undoLetters); looked == undoLetters; {
		var back, gone, counted int64
		err := pgx.BeginTxFunc(ctx, u.db, committed, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, u.sql.Get("undo"), pg.Planned, u.number, after, undoLetters).
				Scan(&looked, &after, &back, &gone, &counted)
			if err == nil && back != gone {
				err = fmt.Errorf("%d letters are back, and %d records of them gone", back, gone)
			}
			return err
		})
		if err != nil {
			return done, err
		}
		done.Returned += back
		done.Handled += looked - back
	}
	return done, nil
}
