package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

const (
	stageWait  = 30 * time.Second       // for the outcomes of a stage
	stageLook  = 200 * time.Millisecond // between two checks, at least
	stageRest  = 9                      // and this many times the duration of a check
	mostStages = 100                    // of a plan
	mostStage  = 1_000_000              // letters of one stage
	mostFailed = 10                     // the job is paused when more than one message in 10 fails again
	mostBefore = 10_000                 // letters of earlier stages that are counted with a stage
)

// Canary returns the plan that "edda dead retry --canary" and the pages use: 1, 5, 25, 125, 625 letters, and then
// 3,125 at a time.
func Canary() []int { return []int{1, 5, 25, 125, 625, 3125} }

func checkPlan(plan []int) (faults []error) {
	if plan != nil && (len(plan) == 0 || len(plan) > mostStages) {
		faults = append(faults, fmt.Errorf("Plan has %d stages, want 1 to %d", len(plan), mostStages))
	}
	for _, n := range plan {
		if n < 1 || n > mostStage {
			faults = append(faults, fmt.Errorf("a stage of Plan has %d letters, want 1 to %d", n, mostStage))
		}
	}
	return faults
}

// judge decides how a canary continues. While a stage waits for the outcomes of its messages, judge sets st.wait. It
// pauses the job when too many messages of the stage, or of all stages since the job was begun or resumed, have
// failed again. A message that waits for its next attempt counts as failed: a policy may retry for longer than any
// stage waits.
func (st *step) judge(ctx context.Context, tx pgx.Tx) error {
	if st.job.Plan == nil {
		return nil
	}
	var waited *float64 // seconds, nil while the stage is being sent
	err := tx.QueryRow(ctx, st.store.sql.Get("stage"), pg.Planned, st.job.Number).Scan(&st.left, &waited)
	if err != nil || waited == nil {
		return err
	}
	began, size := time.Now(), st.stageSize(st.job.Stage)
	near, err := st.fates(ctx, tx, size, false)
	switch {
	case err != nil:
		return err
	case near.stage.tooMany():
		return st.pause(ctx, tx, "stage", near.stage)
	case near.stage.waiting > 0 && *waited < stageWait.Seconds():
		st.wait = max(stageLook, stageRest*time.Since(began))
		return nil
	}
	whole, err := st.fates(ctx, tx, size+st.sentBefore(), true)
	switch {
	case err != nil:
		return err
	case whole.stage.tooMany():
		return st.pause(ctx, tx, "stage", whole.stage)
	case whole.all.tooMany():
		return st.pause(ctx, tx, "all stages up to", whole.all)
	}
	if _, err := tx.Exec(ctx, st.store.sql.Get("next_stage"), pg.Planned, st.job.Number); err != nil {
		return err
	}
	st.job.Stage++
	st.left = st.stageSize(st.job.Stage)
	return nil
}

// stageSize returns the number of letters that a stage sends.
func (st *step) stageSize(stage int) int { return st.job.Plan[min(stage, len(st.job.Plan))-1] }

// sentBefore returns the number of letters that the stages before the present one have sent, at most mostBefore.
func (st *step) sentBefore() (n int) {
	for stage := st.job.Stage - 1; stage > 0 && n < mostBefore; stage-- {
		n += st.stageSize(stage)
	}
	return min(n, mostBefore)
}

// fate counts the messages that a job has sent, by outcome.
type fate struct {
	sent, waiting, failed int
	why                   string
}

func (f fate) tooMany() bool { return f.failed*mostFailed > f.sent }

// fates are the outcomes of a stage, and of the last letters that the job has sent.
type fates struct{ stage, all fate }

// fates returns the outcomes of the last letters, at most the number last. If whole is false, messages that wait for
// a later time are counted only if no other message of the stage waits.
func (st *step) fates(ctx context.Context, tx pgx.Tx, last int, whole bool) (f fates, err error) {
	rows, err := tx.Query(ctx, st.store.sql.Get("fates"), pg.Planned, st.job.Number, last, whole)
	if err != nil {
		return f, err
	}
	into := []*fate{&f.stage, &f.all}
	for ; rows.Next(); into = into[1:] {
		if err := rows.Scan(&into[0].sent, &into[0].waiting, &into[0].failed, &into[0].why); err != nil {
			return f, err
		}
	}
	return f, rows.Err()
}

// pause pauses the job.
func (st *step) pause(ctx context.Context, tx pgx.Tx, of string, f fate) error {
	why := Storable(fmt.Sprintf("%d of %d messages of %s %d failed again: %s", f.failed, f.sent, of, st.job.Stage,
		f.why))
	st.job.State, st.job.Error = recoverability.JobPaused, why
	_, err := tx.Exec(ctx, st.store.sql.Get("pause_job"), pg.Planned, st.job.Number, why)
	return err
}

// ResumeJob opens a paused job again, for RunJob: it starts with the first stage of its plan, and covers the letters
// that it has not sent yet. The error is ErrNoJob if no paused job has this number.
func (s *Store) ResumeJob(ctx context.Context, db Beginner, number int64) error {
	err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.sql.Get("resume_job"), pg.Planned, number)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("%w that is paused", ErrNoJob)
		}
		if err != nil {
			return err
		}
		return s.audit.Add(ctx, tx, jobChange("dead.resume", number, "", nil))
	})
	if err != nil {
		return fmt.Errorf("resume job %d: %w", number, err)
	}
	return nil
}
