package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

const (
	stageWait  = 30 * time.Second       // for the fates of a stage
	stageLook  = 200 * time.Millisecond // between two looks, at least
	stageRest  = 9                      // and so many times as long as a look took: it reads what is due later
	mostStages = 100                    // of a plan
	mostStage  = 1_000_000              // letters of one
	mostDead   = 10                     // one of so many messages may die again
)

// Canary returns the plan of "edda dead retry --canary" and of the pages: 1, 5, 25, 125, 625 letters, and then 3,125 at
// a time.
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

// judge decides how a canary goes on. While a stage waits for the fates of its messages st.wait is set. A stage that
// went well is followed by the next one; after one that did not the job is paused.
func (st *step) judge(ctx context.Context, tx pgx.Tx) error {
	if st.job.Plan == nil {
		return nil
	}
	var waited *float64 // seconds, nil while the stage is being sent
	err := tx.QueryRow(ctx, st.store.sql.Get("stage"), pg.Planned, st.job.Number).Scan(&st.left, &waited)
	if err != nil || waited == nil {
		return err
	}
	var sent, waiting, dead int
	why, began := "", time.Now()
	err = tx.QueryRow(ctx, st.store.sql.Get("fates"), pg.Planned, st.job.Number).Scan(&sent, &waiting, &dead, &why)
	switch {
	case err != nil:
		return err
	case dead*mostDead > sent:
		why = Storable(fmt.Sprintf("%d of %d messages of stage %d died again: %s", dead, sent, st.job.Stage, why))
		st.job.State, st.job.Error = JobPaused, why
		_, err = tx.Exec(ctx, st.store.sql.Get("pause_job"), st.job.Number, why)
		return err
	case waiting > 0 && *waited < stageWait.Seconds():
		st.wait = max(stageLook, stageRest*time.Since(began))
		return nil
	}
	if _, err := tx.Exec(ctx, st.store.sql.Get("next_stage"), st.job.Number); err != nil {
		return err
	}
	st.job.Stage++
	st.left = st.job.Plan[min(st.job.Stage, len(st.job.Plan))-1]
	return nil
}

// ResumeJob opens a job that has paused itself, for RunJob: with the first stage of its plan, and the letters that it
// has not sent yet. The error is ErrNoJob if no paused job has this number.
func (s *Store) ResumeJob(ctx context.Context, db Beginner, number int64) error {
	err := pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.sql.Get("resume_job"), number)
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
