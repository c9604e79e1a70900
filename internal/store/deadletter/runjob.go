package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// RunJob runs a job to its end and returns its state. A step is one transaction that ends at most 100 letters and 8
// MiB and advances the job's mark. A program that is killed loses only the step in hand: the next call of RunJob
// continues where the last step ended. Several processes may run the same job; each letter ends once, and the rate
// holds for all of them together.
//
// If progress is not nil, it is called after each step. RunJob returns when the job is done, cancelled or paused, and
// with an error when ctx ends, when no job has this number (ErrNoJob), or when the connection is lost; the next call
// continues.
func (s *Store) RunJob(
	ctx context.Context, db Beginner, r Resender, number int64, progress func(recoverability.Job),
) (recoverability.Job, error) {
	for {
		st := step{store: s, resend: r}
		err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error { return st.run(ctx, tx, number) })
		if pgerr.ClassOf(err) == pgerr.Race { // a different job has locked the same letters first
			if err = run.Sleep(ctx, run.Jitter(raceWait)); err == nil {
				continue
			}
		}
		if err != nil {
			return st.job, fmt.Errorf("run job %d: %w", number, err)
		}
		wake(ctx, r, st.touched...)
		if progress != nil && st.wait == 0 {
			progress(st.job)
		}
		if st.job.State != recoverability.JobOpen {
			return st.job, nil
		}
		if err := run.Sleep(ctx, st.wait); err != nil {
			return st.job, fmt.Errorf("run job %d: %w", number, err)
		}
	}
}

const (
	stepLetters = 100
	stepBytes   = 8 << 20
	stepRows    = 1000                   // letters that one step reads, for a filter that selects few of them
	stepsPer    = 10                     // steps per second, if the rate allows
	longestWait = 500 * time.Millisecond // until a step checks whether the job was cancelled
	raceWait    = 20 * time.Millisecond
)

// step is one transaction of a job.
type step struct {
	store  *Store
	resend Resender

	job     recoverability.Job
	wait    time.Duration // the job is not due yet
	ended   int64
	kept    int64
	fault   string
	touched []string // endpoints that got messages
	left    int      // letters that the stage still has to send
}

func (st *step) run(ctx context.Context, tx pgx.Tx, number int64) error {
	if err := st.begin(ctx, tx, number); err != nil || st.job.State != recoverability.JobOpen || st.wait > 0 {
		return err
	}
	if err := st.judge(ctx, tx); err != nil || st.job.State != recoverability.JobOpen || st.wait > 0 {
		return err
	}
	chosen, mark, err := st.choose(ctx, tx)
	if err != nil {
		return err
	}
	if err := st.end(ctx, tx, chosen); err != nil {
		return err
	}
	return st.advance(ctx, tx, mark)
}

// begin locks the job, so that its steps never overlap in all processes.
func (st *step) begin(ctx context.Context, tx pgx.Tx, number int64) error {
	rows, err := tx.Query(ctx, st.store.sql.Get("lock_job"), pg.Planned, number)
	if err != nil {
		return err
	}
	if st.job, err = oneJob(rows); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, st.store.sql.Get("job_wait"), pg.Planned, number)
	if err != nil {
		return err
	}
	seconds, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[float64])
	if err != nil {
		return err
	}
	st.wait = min(time.Duration(max(seconds, 0)*float64(time.Second)), longestWait)
	return nil
}

// choose returns the next letters of the job, and the last number that it has read.
func (st *step) choose(ctx context.Context, tx pgx.Tx) (chosen []candidate, mark int64, err error) {
	most := stepLetters
	if j := st.job; j.Rate > 0 {
		most = int(max(1, min(j.Rate/stepsPer, stepLetters)))
	}
	if st.job.Plan != nil {
		most = min(most, st.left)
	}
	w := walk{of: st.job.Filter, after: st.job.Mark, last: st.job.Last, most: most, rows: stepRows}
	found, err := st.store.walk(ctx, tx, w)
	if err != nil {
		return nil, 0, err
	}
	bytes := 0
	for n, c := range found.letters {
		if bytes += c.size; n > 0 && bytes > stepBytes {
			return found.letters[:n], found.letters[n-1].number, nil
		}
	}
	return found.letters, found.mark, nil
}

// end ends the letters, except letters that have ended in the meantime.
func (st *step) end(ctx context.Context, tx pgx.Tx, chosen []candidate) error {
	if st.job.Action == recoverability.JobDiscard {
		tag, err := tx.Exec(ctx, st.store.sql.Get("discard_many"), pg.Planned, numbers(chosen), Storable(st.job.Reason))
		st.ended = tag.RowsAffected()
		return err
	}
	for len(chosen) > 0 {
		var stays func(candidate) bool
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
			stays, err = st.retry(ctx, tx, chosen)
			return err
		})
		if !errors.Is(err, ErrUndeliverable) && !errors.Is(err, saga.ErrTooLarge) && !errors.Is(err, errPatch) {
			return err
		}
		// Letters that cannot be retried must not block the others: the step starts again without them.
		before := len(chosen)
		chosen = slices.DeleteFunc(chosen, stays)
		st.kept += int64(before - len(chosen))
		st.fault = err.Error()
	}
	return nil
}

// retry takes all letters in one statement, so that every caller locks them in the same order. With an error it returns
// a function that reports which letters have to stay: those of an endpoint without a queue, or a too large one.
func (st *step) retry(ctx context.Context, tx pgx.Tx, chosen []candidate) (stays func(candidate) bool, err error) {
	taken, err := st.take(ctx, tx, numbers(chosen))
	if err != nil {
		return nil, err
	}
	for _, l := range taken {
		if err := letter(l).fits(); err != nil {
			return func(c candidate) bool { return c.number == l.Number },
				fmt.Errorf("dead letter %d: %w", l.Number, err)
		}
	}
	if stays, err := st.change(ctx, tx, taken); err != nil {
		return stays, err
	}
	from := make(map[int64]string, len(taken))
	for n := range taken {
		l := &taken[n]
		from[l.Number], l.Endpoint = l.Endpoint, cmp.Or(st.job.To, l.Endpoint)
	}
	slices.SortFunc(taken, func(a, b recoverability.Letter) int {
		return cmp.Or(strings.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Number, b.Number))
	})
	st.ended, st.touched = int64(len(taken)), nil
	for len(taken) > 0 {
		endpoint := taken[0].Endpoint
		end := slices.IndexFunc(taken, func(l recoverability.Letter) bool { return l.Endpoint != endpoint })
		if end < 0 {
			end = len(taken)
		}
		if err := st.resend.Resend(ctx, tx, taken[:end]...); err != nil {
			st.ended, st.touched = 0, nil
			return func(c candidate) bool { return cmp.Or(st.job.To, c.endpoint) == endpoint }, err
		}
		if err := st.keepSent(ctx, tx, taken[:end], from); err != nil {
			return nil, err
		}
		st.touched = append(st.touched, endpoint)
		taken = taken[end:]
	}
	return nil, nil
}

func numbers(of []candidate) []int64 {
	all := make([]int64, len(of))
	for n, c := range of {
		all[n] = c.number
	}
	return all
}

func (st *step) take(ctx context.Context, tx pgx.Tx, numbers []int64) ([]recoverability.Letter, error) {
	rows, err := tx.Query(ctx, st.store.sql.Get("take_many"), pg.Planned, numbers)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanWithBody)
}

// advance records the progress of the step, in the same transaction, so that each letter ends once.
func (st *step) advance(ctx context.Context, tx pgx.Tx, mark int64) error {
	seconds := 0.0
	if st.job.Rate > 0 {
		seconds = float64(st.ended+st.kept) / st.job.Rate
	}
	rows, err := tx.Query(ctx, st.store.sql.Get("advance_job"), pg.Planned, st.job.Number, mark, st.ended, st.kept,
		Storable(st.fault), seconds)
	if err != nil {
		return err
	}
	st.job, err = oneJob(rows)
	return err
}
