package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Action is the operation of a job on dead letters.
type Action string

// The actions of jobs.
const (
	ActionRetry   Action = "retry"
	ActionDiscard Action = "discard"
)

// JobState is the state of a job.
type JobState string

// The states of jobs. A job that no process is running is open, too. A paused job has stopped itself, see Job.Plan.
const (
	JobOpen      JobState = "open"
	JobPaused    JobState = "paused"
	JobDone      JobState = "done"
	JobCancelled JobState = "cancelled"
)

// Job ends the dead letters that Filter selects, in the order of their numbers, up to the last letter at the time
// when the job was created. Later letters are not part of it, so no message is retried in circles.
type Job struct {
	Number int64 // given by the table
	Action Action
	Filter Filter  // After and Limit are not used
	Rate   float64 // letters per second, over all processes that run the job; 0 is no limit
	Reason string  // of ActionDiscard and of a Patch, for the record

	// To is the endpoint that a retry sends the letters to; "" sends each to its own endpoint.
	To string
	// Plan makes a retry a canary: it has the number of letters of each stage, and its last number holds for all
	// further stages. After a stage the job waits until each of its messages has left the queue or has failed again, or
	// 30 seconds have passed. A message has failed again when it is dead again or waits for its next attempt. If more
	// than a tenth of the stage, or of all stages so far, have failed again, the job is paused; ResumeJob continues it
	// with the first stage. Nil sends all letters at once. A plan has at most 100 stages of 1 to 1,000,000 letters.
	Plan []int
	// Patch is a JSON merge patch (RFC 7396) that a retry applies to the body of each letter; nil changes no body.
	// The old letters are kept as for Edit. RunJob needs a Patcher. Letters that the patch does not fit stay dead.
	Patch []byte

	State   JobState
	Ended   int64     // letters that it has retried or discarded
	Kept    int64     // letters that it could not retry; they remain dead letters
	Undone  int64     // letters that UndoJob has taken back
	Stage   int       // of a Plan, from 1
	Error   string    // why the last kept letter could not be retried, or why the job is paused
	Mark    int64     // the job is finished with every letter up to this number
	Last    int64     // the last number of the job
	Created time.Time // by the database's clock, as is Changed
	Changed time.Time
}

// NewJob stores a job for RunJob. It uses only Action, Filter, Rate, Reason, To, Plan and Patch of j. If the endpoint
// To has no queue, the error is ErrUndeliverable.
func (s *Store) NewJob(ctx context.Context, db Beginner, j Job) (number int64, err error) {
	if err = j.check(); err == nil {
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

func (s *Store) newJob(ctx context.Context, tx pgx.Tx, j Job) (number int64, err error) {
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
	from, before := j.Filter.period()
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

func (j Job) check() error {
	var faults []error
	if j.Action != ActionRetry && j.Action != ActionDiscard {
		faults = append(faults, fmt.Errorf("Action is %q, want %q or %q", j.Action, ActionRetry, ActionDiscard))
	}
	if j.Action == ActionDiscard && j.Reason == "" {
		faults = append(faults, errors.New("a job that discards needs a Reason"))
	}
	if j.Action != ActionRetry && (j.To != "" || j.Plan != nil || j.Patch != nil) {
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
	return errors.Join(append(faults, j.Filter.check())...)
}

// Job returns one job, or ErrNoJob.
func (s *Store) Job(ctx context.Context, q Queryer, number int64) (Job, error) {
	rows, err := q.Query(ctx, s.sql.Get("job"), pg.Planned, number)
	if err != nil {
		return Job{}, fmt.Errorf("show job %d: %w", number, err)
	}
	j, err := oneJob(rows)
	if err != nil {
		return Job{}, fmt.Errorf("show job %d: %w", number, err)
	}
	return j, nil
}

// ErrNoJob means that no job has this number.
var ErrNoJob = errors.New("no such job of dead letters")

// Jobs returns at most limit jobs, the newest first; 0 or less is DefaultLimit, and more than MaxLimit is an error.
func (s *Store) Jobs(ctx context.Context, q Queryer, limit int) ([]Job, error) {
	if err := (Filter{Limit: limit}).check(); err != nil {
		return nil, fmt.Errorf("list jobs of dead letters: %w", err)
	}
	return collect(ctx, q, listing{"jobs of dead letters", s.sql.Get("jobs")}, scanJob, pg.Planned,
		Filter{Limit: limit}.limit())
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

func oneJob(rows pgx.Rows) (Job, error) {
	j, err := pgx.CollectExactlyOneRow(rows, scanJob)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoJob
	}
	return j, err
}

func scanJob(row pgx.CollectableRow) (j Job, err error) {
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
		return Job{}, err
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
