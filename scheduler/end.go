package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RunState is the state of a run.
type RunState string

// The states. RunSucceeded and the states after it are ends.
const (
	RunWaiting   RunState = "waiting"
	RunQueued    RunState = "queued"
	RunActive    RunState = "active"
	RunDead      RunState = "dead"
	RunSucceeded RunState = "succeeded"
	RunCancelled RunState = "cancelled"
	RunTimedOut  RunState = "timed_out"
)

// Ended reports whether s is an end.
func (s RunState) Ended() bool { return s == RunSucceeded || s == RunCancelled || s == RunTimedOut }

// Cancel ends a run that is waiting, queued, active or dead. A handler that is at work on its message can no longer
// commit. A message that is still on its way is dropped when it arrives. A saga that the run started continues, and
// its end is not recorded. The manifest may fire again: to prevent that, pause it first. Cancelling a cancelled run
// returns nil. Cancel returns ErrNoRun if the run does not exist, and ErrEnded if it has succeeded or timed out.
//
// It waits for a transaction that has locked the run; ctx limits that time.
func (s *Store) Cancel(ctx context.Context, run saga.ID, note string) error {
	err := checkNote("note", note)
	if err == nil {
		err = s.change(ctx, func(tx pgx.Tx) error { return s.cancelOne(ctx, tx, run, note) })
	}
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", run, err)
	}
	return nil
}

func (t tables) cancelOne(ctx context.Context, tx pgx.Tx, run saga.ID, note string) error {
	r, err := t.lockRun(ctx, tx, run)
	switch {
	case err != nil:
		return err
	case r.state == RunCancelled:
		return nil
	case r.state.Ended():
		return fmt.Errorf("%w: it is %s", ErrEnded, r.state)
	}
	if err := t.cancelLocked(ctx, tx, []lockedRun{r}, note); err != nil {
		return err
	}
	c := audit.Change{Verb: "run.cancel", Target: run.String(), Reason: note}
	return t.audit.addRun(ctx, tx, c, r.state, RunCancelled)
}

// lockedRun is a run that this transaction has locked.
type lockedRun struct {
	id       saga.ID
	manifest int64
	state    RunState
}

// lockRuns locks runs in the order of their ids, as all transactions do.
func (t tables) lockRuns(ctx context.Context, tx pgx.Tx, ids []saga.ID) ([]lockedRun, error) {
	rows, err := tx.Query(ctx, t.sql.Get("lock_runs"), ids)
	if err != nil {
		return nil, fmt.Errorf("lock runs: %w", err)
	}
	locked, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r lockedRun, err error) {
		err = row.Scan(&r.id, &r.manifest, &r.state)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("lock runs: %w", err)
	}
	return locked, nil
}

func (t tables) lockRun(ctx context.Context, tx pgx.Tx, id saga.ID) (lockedRun, error) {
	locked, err := t.lockRuns(ctx, tx, []saga.ID{id})
	if err == nil && len(locked) == 0 {
		err = ErrNoRun
	}
	if err != nil {
		return lockedRun{}, err
	}
	return locked[0], nil
}

// cancelLocked locks in the order of run_end: the runs, then their manifests and the followers of these.
func (t tables) cancelLocked(ctx context.Context, tx pgx.Tx, runs []lockedRun, note string) error {
	if err := t.lockManifests(ctx, tx, runs); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, t.sql.Get("cancel_runs"), idsOf(runs), note); err != nil {
		return fmt.Errorf("end runs: %w", err)
	}
	if err := t.notifyManifests(ctx, tx, runs); err != nil {
		return err
	}
	return t.wake(ctx, tx, toEvaluate)
}

func idsOf(runs []lockedRun) (ids []saga.ID) {
	for _, r := range runs {
		ids = append(ids, r.id)
	}
	return ids
}

func (t tables) lockManifests(ctx context.Context, tx pgx.Tx, runs []lockedRun) error {
	var manifests []int64
	for _, r := range runs {
		manifests = append(manifests, r.manifest)
	}
	if _, err := tx.Exec(ctx, t.sql.Get("lock_manifests_of_runs"), manifests); err != nil {
		return fmt.Errorf("lock manifests: %w", err)
	}
	return nil
}

func (t tables) notifyManifests(ctx context.Context, tx pgx.Tx, runs []lockedRun) error {
	if _, err := tx.Exec(ctx, t.sql.Get("runs_left"), idsOf(runs)); err != nil {
		return fmt.Errorf("write the ends of runs to their manifests: %w", err)
	}
	return nil
}

// CancelGroup cancels the waiting, queued and active runs of a group, at most 200 in one transaction, and returns
// their number. It does not cancel runs that are queued after it began. It does not cancel dead runs either, because
// that would let their manifests fire again. To stop a group, pause it first. If it returns an error, the number
// counts the runs that are cancelled; call it again to continue. It returns ErrNoGroup if the group does not exist.
func (s *Store) CancelGroup(ctx context.Context, name, note string) (cancelled int, err error) {
	id := int64(0)
	err = checkNote("note", note)
	if err == nil {
		id, err = s.groupID(ctx, name)
	}
	if err == nil {
		cancelled, err = s.cancelAll(ctx, choice{sql: s.sql.Get("runs_of_group"), of: id,
			told: audit.Change{Verb: "group.cancel", Target: name, Reason: note}}, note)
	}
	if err != nil {
		return cancelled, fmt.Errorf("cancel the runs of group %.140q: %w", name, err)
	}
	return cancelled, nil
}

// choice is a statement that finds a number of runs that were queued before a given time.
type choice struct {
	sql  string
	of   int64
	told audit.Change // of each step; without a Verb no entry is written, because the change around it has one
}

const cancelStep = 200

// cancelAll repeats until it finds no more runs. It ends, because it does not find cancelled runs again.
func (t tables) cancelAll(ctx context.Context, c choice, note string) (cancelled int, err error) {
	began, err := t.now(ctx, t.pool)
	if err != nil {
		return 0, err
	}
	for {
		found, ended := 0, 0
		err := t.change(ctx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, c.sql, c.of, began, cancelStep)
			if err != nil {
				return fmt.Errorf("find runs: %w", err)
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[saga.ID])
			if found = len(ids); err != nil || found == 0 {
				return err
			}
			if ended, err = t.cancelOpen(ctx, tx, ids, note); err != nil {
				return err
			}
			return t.audit.addRuns(ctx, tx, c.told, ended)
		})
		if cancelled += ended; err != nil || found == 0 {
			return cancelled, err
		}
	}
}

// cancelOpen cancels the runs that have not ended or died since they were found.
func (t tables) cancelOpen(ctx context.Context, tx pgx.Tx, ids []saga.ID, note string) (int, error) {
	locked, err := t.lockRuns(ctx, tx, ids)
	if err != nil {
		return 0, err
	}
	var open []lockedRun
	for _, r := range locked {
		if !r.state.Ended() && r.state != RunDead {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		return 0, nil
	}
	return len(open), t.cancelLocked(ctx, tx, open, note)
}

// Retry queues a run again that is dead, timed out or cancelled, with its message and its number of attempts. A run
// that waits for its next attempt is queued at once. A dead run then no longer holds its manifest, and the schedule
// continues when the run has ended. If the manifest has no attempts left, a failure makes the run dead again.
// Retrying a queued run returns nil. Retry returns ErrNoRun if the run does not exist, ErrEnded if it has succeeded,
// and ErrTaken if a different run has its place. A run that is active must be cancelled first.
func (s *Store) Retry(ctx context.Context, run saga.ID, note string) error {
	err := checkNote("note", note)
	if err == nil {
		err = s.change(ctx, func(tx pgx.Tx) error { return s.retryOne(ctx, tx, run, note) })
	}
	if name := pgerr.Constraint(err); name == "run_entry_idx" || name == "run_activation_idx" {
		err = ErrTaken
	}
	if err != nil {
		return fmt.Errorf("retry run %s: %w", run, err)
	}
	return nil
}

var errActive = errors.New("it is active: cancel it first")

func (t tables) retryOne(ctx context.Context, tx pgx.Tx, run saga.ID, note string) error {
	r, err := t.lockRun(ctx, tx, run)
	switch {
	case err != nil:
		return err
	case r.state == RunQueued:
		return nil
	case r.state == RunActive:
		return errActive
	case r.state == RunSucceeded:
		return fmt.Errorf("%w: it succeeded; trigger its manifest instead", ErrEnded)
	}
	runs := []lockedRun{r}
	if err := t.lockManifests(ctx, tx, runs); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, t.sql.Get("retry_run"), run, note); err != nil {
		return fmt.Errorf("queue it again: %w", err)
	}
	if _, err := tx.Exec(ctx, t.sql.Get("wait_for_run"), run); err != nil {
		return fmt.Errorf("set the run of its manifest: %w", err)
	}
	if err := t.notifyManifests(ctx, tx, runs); err != nil {
		return err
	}
	c := audit.Change{Verb: "run.retry", Target: run.String(), Reason: note}
	if err := t.audit.addRun(ctx, tx, c, r.state, RunQueued); err != nil {
		return err
	}
	return t.wake(ctx, tx, toDispatch)
}

// Reports records the beats and ends of runs whose work continues elsewhere, after a handler has called
// bus.Context.LeaveRun. It is safe for concurrent use.
type Reports struct {
	tables
	schemaID atomic.Pointer[string] // nil until it is read
}

// NewReports makes Reports for a schema; "" is "edda". It does no I/O.
func NewReports(pool *pgxpool.Pool, schema string) (*Reports, error) {
	s, err := NewStore(pool, StoreOptions{Schema: schema})
	if err != nil {
		return nil, err
	}
	return &Reports{tables: s.tables}, nil
}

// Beat records a sign of life of an attempt. Call it at least every third of Options.LostAfter. It returns
// ErrNotCurrent if the attempt is over: the work may stop, and its end will not count.
func (r *Reports) Beat(ctx context.Context, run saga.ID, attempt int) error {
	if err := r.believes(ctx, run, attempt); err != nil {
		return fmt.Errorf("beat of run %s, attempt %d: %w", run, attempt, pgerr.Explain(err))
	}
	current := 0
	err := r.pool.Row(ctx, r.sql.Get("beat_attempt"), run, attempt).Scan(&current)
	if err == nil && current == 0 {
		err = ErrNotCurrent
	}
	if err != nil {
		return fmt.Errorf("beat of run %s, attempt %d: %w", run, attempt, pgerr.Explain(err))
	}
	return nil
}

// End ends an attempt whose work continued elsewhere. A nil failure is success. Any other failure is retried while the
// manifest has retries, unless it is a saga.Permanent error. The end is committed when End returns nil. If the caller
// gets no answer it may call End again: if the attempt has already ended with the same outcome, End returns nil, and
// permanent and other failures count as the same outcome. End returns ErrNoRun if the run does not exist, and
// ErrNotCurrent if the run was cancelled, timed out, or was lost and sent again; then nothing has changed.
func (r *Reports) End(ctx context.Context, run saga.ID, attempt int, failure error) error {
	outcome, text := runs.Succeeded, ""
	if failure != nil {
		outcome, text = runs.Failed, deadletter.Storable(deadletter.ErrorText(failure))
		if permanent := (*saga.PermanentError)(nil); errors.As(failure, &permanent) {
			outcome = runs.Dead
		}
	}
	doubt := r.believes(ctx, run, attempt) // outside of the transaction, because it may need a second connection
	if doubt != nil && !errors.Is(doubt, wire.ErrNoToken) {
		return fmt.Errorf("end run %s, attempt %d: %w", run, attempt, pgerr.Explain(doubt))
	}
	err := r.change(ctx, func(tx pgx.Tx) error {
		var answers []int32
		if err := tx.QueryRow(ctx, r.sql.Get("check_attempt"), run, attempt).Scan(&answers); err != nil {
			return err
		}
		switch answers[0] {
		case runs.Missing:
			return ErrNoRun
		case runs.Over:
			return r.endedSo(ctx, tx, run, attempt, outcome)
		}
		if doubt != nil {
			return doubt
		}
		if _, err := tx.Exec(ctx, r.sql.Get("end_attempt"), run, attempt, outcome, text); err != nil {
			return err
		}
		return r.wake(ctx, tx, toEvaluate)
	})
	if err != nil {
		return fmt.Errorf("end run %s, attempt %d: %w", run, attempt, pgerr.Explain(err))
	}
	return nil
}

// believes returns wire.ErrNoToken if a report needs the token of its attempt and does not have it.
func (r *Reports) believes(ctx context.Context, run saga.ID, attempt int) error {
	if !wire.NeedsToken(ctx) {
		return nil
	}
	key := r.schemaID.Load()
	if key == nil {
		key = new(string)
		if err := r.pool.Row(ctx, r.sql.Get("schema_id")).Scan(key); err != nil {
			return err
		}
		r.schemaID.Store(key)
	}
	if !wire.Proves(ctx, *key, run, attempt) {
		return wire.ErrNoToken
	}
	return nil
}

// endedSo returns ErrNotCurrent unless the attempt has ended with this outcome.
func (r *Reports) endedSo(ctx context.Context, tx pgx.Tx, run saga.ID, attempt int, outcome string) error {
	ended := ""
	if err := tx.QueryRow(ctx, r.sql.Get("outcome_of_attempt"), pg.Planned, run, attempt).Scan(&ended); err != nil {
		return err
	}
	if outcome == runs.Dead {
		outcome = runs.Failed // because run_end stores that
	}
	if ended != outcome {
		return ErrNotCurrent
	}
	return nil
}
