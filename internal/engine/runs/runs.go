package runs

import (
	_ "embed"
	"errors"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

//go:embed runs.sql
var statements string

// Store has the statements that check runs and end them.
type Store struct{ sql pg.Statements }

// New returns the statements of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// QueueBeat queues the heartbeats of attempts.
func (r *Store) QueueBeat(pipeline *pgx.Batch, a Attempts) *pgx.QueuedQuery {
	return pipeline.Queue(r.sql.Get("run_beat"), a.runs, a.attempts)
}

// QueueRest queues the end of the heartbeats of attempts.
func (r *Store) QueueRest(pipeline *pgx.Batch, a Attempts) {
	pipeline.Queue(r.sql.Get("run_rest"), a.runs, a.attempts)
}

// ErrMissing is the error of a message whose run was deleted. It is stored as a dead letter, so that it does not
// vanish.
var ErrMissing = errors.New("its run does not exist")

// IsOver is the reason for discarding a message whose run was cancelled, timed out, or sent again as a later attempt.
const IsOver = "its run is over"

// Results of run_check.
const (
	Over    = 0
	Current = 1
	Missing = -1
)

// Outcomes for run_end.
const (
	Succeeded = "succeeded"
	Failed    = "failed" // tried again while its manifest has retries
	Dead      = "dead"   // never tried again
	Discarded = "discarded"
	Cancelled = "cancelled"
)

// Attempts names attempts of runs, in the form of the functions' parameters.
type Attempts struct {
	runs     [][16]byte
	attempts []int32
}

// Add names one more attempt.
func (a *Attempts) Add(f *saga.Firing) {
	a.runs, a.attempts = append(a.runs, f.Run), append(a.attempts, int32(f.Attempt))
}

// Len returns the number of attempts.
func (a *Attempts) Len() int { return len(a.runs) }

// QueueCheck queues run_check. The result has one number for each attempt after the pipeline was sent.
func (r *Store) QueueCheck(pipeline *pgx.Batch, a Attempts, worker *string) *[]int32 {
	answers := new([]int32)
	pipeline.Queue(r.sql.Get("run_check"), a.runs, a.attempts,
		worker).QueryRow(func(row pgx.Row) error { return row.Scan(answers) })
	return answers
}

// Ends are the reports of one transaction.
type Ends struct {
	Attempts
	outcomes, errors []string
	Held             []int32 // positions of runs that must be current
}

// Add reports how an attempt ended. text is the error, if it did not succeed.
func (e *Ends) Add(f *saga.Firing, outcome, text string) {
	e.Attempts.Add(f)
	e.outcomes, e.errors = append(e.outcomes, outcome), append(e.errors, deadletter.Storable(text))
}

// AddHeld is Add for a run that this transaction has checked.
func (e *Ends) AddHeld(f *saga.Firing, outcome, text string) {
	e.Add(f, outcome, text)
	e.Held = append(e.Held, int32(e.Len()))
}

// QueueEnd queues run_end, if there is something to report.
func (r *Store) QueueEnd(pipeline *pgx.Batch, e *Ends) {
	if e.Len() > 0 {
		pipeline.Queue(r.sql.Get("run_end"), e.runs, e.Attempts.attempts, e.outcomes, e.errors, e.Held)
	}
}
