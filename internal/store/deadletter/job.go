package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// NewJob stores a job for RunJob. It uses only Action, Filter, Rate, Reason, To, Plan and Patch of j. If the endpoint
// To has no queue, the error is ErrUndeliverable.
func (s *Store) NewJob(ctx context.Context, db Beginner, j recoverability.Job) (number int64, err error) {
	if err = checkJob(j); err == nil {
		err = pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) (err error) {
			number, err = s.newJob(ctx, tx, j)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("new job: %w", err)
	}
	return number, nil
}

func (s *Store) newJob(ctx context.Context, tx pgx.Tx, j recoverability.Job) (number int64, err error) {
	var id, rate any
	if !j.Filter.MessageID.IsZero() {
		id = j.Filter.MessageID.String()
	}
	if j.Rate > 0 {
		rate = j.Rate
	}
	if err := isInstalled(ctx, tx, s.sql.Get("queue_of"), j.To); err != nil {
		return 0, err
	}
	from, before := filter(j.Filter).period()
	rows, err := tx.Query(ctx, s.sql.Get("new_job"), pg.Planned, string(j.Action), Storable(j.Filter.Endpoint),
		Storable(j.Filter.Kind),
		Storable(j.Filter.Group), id, from, before, Storable(j.Reason), rate, j.To, j.Plan, j.Patch)
	if err != nil {
		return 0, err
	}
	if number, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err != nil {
		return 0, err
	}
	after := map[string]any{"action": j.Action}
	for name, value := range map[string]string{"endpoint": j.Filter.Endpoint, "kind": j.Filter.Kind,
		"group": j.Filter.Group, "to": j.To} {
		if value != "" {
			after[name] = Storable(value)
		}
	}
	if j.Patch != nil {
		after["patch"] = json.RawMessage(j.Patch)
	}
	if j.Plan != nil {
		after["plan"] = j.Plan
	}
	return number, s.audit.Add(ctx, tx, jobChange("dead.job", number, j.Reason, after))
}

// isInstalled returns ErrUndeliverable if an endpoint has no queue.
func isInstalled(ctx context.Context, tx pgx.Tx, queueOf, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	_, err := tx.Exec(ctx, queueOf, Storable(endpoint))
	if pgerr.Code(err) == "ED002" {
		return fmt.Errorf("%w: there is no endpoint %.80q; run it once, or install it", ErrUndeliverable, endpoint)
	}
	return err
}

func jobChange(verb string, number int64, reason string, after any) audit.Change {
	return audit.Change{Verb: verb, Target: "job " + strconv.FormatInt(number, 10), Reason: reason, After: after}
}

// mostRate is more than a database can achieve, and small enough for exact arithmetic.
const mostRate = 1e6

func checkJob(j recoverability.Job) error {
	var faults []error
	if j.Action != recoverability.JobRetry && j.Action != recoverability.JobDiscard {
		faults = append(faults, fmt.Errorf("Action is %q, want %q or %q", j.Action, recoverability.JobRetry,
			recoverability.JobDiscard))
	}
	if j.Action == recoverability.JobDiscard && j.Reason == "" {
		faults = append(faults, errors.New("a job that discards needs a Reason"))
	}
	if j.Action != recoverability.JobRetry && (j.To != "" || j.Plan != nil || j.Patch != nil) {
		faults = append(faults, errors.New("only a job that retries has To or a Plan, or a Patch"))
	}
	if object := map[string]json.RawMessage(nil); j.Patch != nil && json.Unmarshal(j.Patch, &object) != nil {
		faults = append(faults, errors.New("Patch is not a JSON object"))
	}
	faults = append(faults, checkPlan(j.Plan)...)
	if math.IsNaN(j.Rate) || j.Rate < 0 || j.Rate > mostRate || j.Rate > 0 && j.Rate < 1/mostRate {
		faults = append(faults, fmt.Errorf("Rate is %v, want 0 for no limit, or up to %v letters a second", j.Rate,
			float64(mostRate)))
	}
	return errors.Join(append(faults, filter(j.Filter).check())...)
}

// Job returns one job, or ErrNoJob.
func (s *Store) Job(ctx context.Context, q Queryer, number int64) (recoverability.Job, error) {
	rows, err := q.Query(ctx, s.sql.Get("job"), pg.Planned, number)
	if err != nil {
		return recoverability.Job{}, fmt.Errorf("show job %d: %w", number, err)
	}
	j, err := oneJob(rows)
	if err != nil {
		return recoverability.Job{}, fmt.Errorf("show job %d: %w", number, err)
	}
	return j, nil
}

// ErrNoJob means that no job has this number.
var ErrNoJob = errors.New("no such job of dead letters")

// Jobs returns at most limit jobs, the newest first; 0 or less is DefaultLimit, and more than MaxLimit is an error.
func (s *Store) Jobs(ctx context.Context, q Queryer, limit int) ([]recoverability.Job, error) {
	if err := (filter{Limit: limit}).check(); err != nil {
		return nil, fmt.Errorf("list jobs of dead letters: %w", err)
	}
	return collect(ctx, q, listing{"jobs of dead letters", s.sql.Get("jobs")}, scanJob, pg.Planned,
		filter{Limit: limit}.limit())
}

// CancelJob cancels a job that is open or paused. Letters that it has ended stay ended, and a running RunJob returns
// after the step in hand. The error is ErrNoJob if no open or paused job has this number.
func (s *Store) CancelJob(ctx context.Context, db Beginner, number int64) error {
	err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.sql.Get("cancel_job"), pg.Planned, number)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("%w that is open", ErrNoJob)
		}
		if err != nil {
			return err
		}
		return s.audit.Add(ctx, tx, jobChange("dead.cancel", number, "", nil))
	})
	if err != nil {
		return fmt.Errorf("cancel job %d: %w", number, err)
	}
	return nil
}

func oneJob(rows pgx.Rows) (recoverability.Job, error) {
	j, err := pgx.CollectExactlyOneRow(rows, scanJob)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoJob
	}
	return j, err
}

func scanJob(row pgx.CollectableRow) (j recoverability.Job, err error) {
	var (
		id           *string
		from, before *time.Time
		rate         *float64
	)
	err = row.Scan(&j.Number, &j.Action, &j.State, &j.Filter.Endpoint, &j.Filter.Kind, &j.Filter.Group, &id, &from,
		&before,
		&j.Reason, &rate, &j.Mark, &j.Last, &j.Ended, &j.Kept, &j.Error, &j.Created, &j.Changed, &j.To, &j.Plan,
		&j.Stage, &j.Undone, &j.Patch)
	if err != nil {
		return recoverability.Job{}, err
	}
	j.Created, j.Changed = j.Created.UTC(), j.Changed.UTC()
	if from != nil {
		j.Filter.DiedFrom = from.UTC()
	}
	if before != nil {
		j.Filter.DiedBefore = before.UTC()
	}
	if rate != nil {
		j.Rate = *rate
	}
	if id != nil {
		j.Filter.MessageID, err = saga.ParseID(*id)
	}
	return j, err
}
