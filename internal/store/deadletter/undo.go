package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// keepSent stores the data that UndoJob needs of letters that the job has sent. The letters name the endpoint that
// they were sent to; from has their own endpoints, by number.
func (st *step) keepSent(ctx context.Context, tx pgx.Tx, letters []recoverability.Letter, from map[int64]string) error {
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

// known returns nil, for a SQL NULL, if t is zero.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

const undoLetters = 100 // of one transaction

// UndoJob takes back the messages that a retry job has sent: each message that still waits in its queue, and that no
// worker has attempted, becomes the same dead letter again, with its number. An open or paused job is cancelled first.
// UndoJob works in steps like RunJob, so it can be called again after an interruption. Its data is kept for 30 days
// after the end of the job. The error is ErrNoJob if no retry job has this number. A job with a Patch cannot be undone.
func (s *Store) UndoJob(ctx context.Context, db Beginner, number int64) (done recoverability.Undone, err error) {
	u := undoing{s, db, number}
	if err = u.stop(ctx); err == nil {
		done, err = u.run(ctx)
	}
	if err != nil {
		return done, fmt.Errorf("undo job %d: %w", number, err)
	}
	return done, nil
}

// undoing undoes a job.
type undoing struct {
	*Store
	db     Beginner
	number int64
}

// stop cancels the job.
func (u *undoing) stop(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, u.db, committed, func(tx pgx.Tx) error {
		var (
			action        recoverability.JobAction
			ended, undone int64
			changed       bool
		)
		err := tx.QueryRow(ctx, u.sql.Get("stop_job"), pg.Planned, u.number).Scan(&action, &ended, &undone, &changed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoJob
		case err != nil:
			return err
		case action != recoverability.JobRetry:
			return fmt.Errorf("%w that retries: a discard cannot be undone", ErrNoJob)
		case changed:
			return errors.New("it has changed its letters: the table dead_letter_edit has the originals")
		}
		c := jobChange("dead.undo", u.number, "", nil)
		c.Before = map[string]int64{"ended": ended, "undone": undone}
		return u.audit.Add(ctx, tx, c)
	})
}

// run takes back the letters of the job.
func (u *undoing) run(ctx context.Context) (done recoverability.Undone, err error) {
	for after, looked := int64(0), int64(undoLetters); looked == undoLetters; {
		var back, gone, counted int64
		err := pgx.BeginTxFunc(ctx, u.db, committed, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, u.sql.Get("undo"), pg.Planned, u.number, after, undoLetters).
				Scan(&looked, &after, &back, &gone, &counted)
			if err == nil && back != gone {
				err = fmt.Errorf("%d letters were restored, but %d of their records deleted", back, gone)
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
