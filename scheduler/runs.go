package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// RunInfo describes a run. Times that do not apply are zero.
type RunInfo struct {
	ID       saga.ID
	Manifest string
	Group    string
	Origin   string // schedule, dependent, manual, activation or backfill
	State    RunState
	Due      time.Time // the due time of the schedule
	Ready    time.Time // the run is not dispatched before this time
	Priority int
	Kind     string
	Body     []byte    // only set by RunOf
	Attempt  int       // messages that were sent for it
	Refused  int       // failed sends of its message in a row
	Message  saga.ID   // of the last attempt
	Deadline time.Time // of an active run
	Beat     time.Time // the last sign of life of its handler
	Queued   time.Time
	Ended    time.Time
	Error    string // of the last attempt
	Note     string // of the operator who cancelled or retried the run
	Attempts []Attempt
}

// Attempt is one message that was sent for a run.
type Attempt struct {
	Attempt int
	Message saga.ID
	Sent    time.Time
	Began   time.Time // only for a handler that gives signs of life
	Worker  string
	Ended   time.Time
	Outcome string // succeeded, failed, discarded, cancelled, timed_out or lost; "" while it is open
	Error   string
}

// RunFilter selects runs. The zero value selects all.
type RunFilter struct {
	Manifest     string
	Group        string // the group that the manifest was in when the run was queued
	State        RunState
	Since, Until time.Time // queued at or after Since, and before Until
	After        saga.ID   // continue with runs that are older than this one
	Limit        int       // 0 is 100, at most MaxLimit
}

func (f RunFilter) check() error {
	states := []RunState{"", RunWaiting, RunQueued, RunActive, RunDead, RunSucceeded, RunCancelled, RunTimedOut}
	switch {
	case f.Limit < 0 || f.Limit > MaxLimit:
		return fmt.Errorf("Limit: %d: want 0 to %d", f.Limit, MaxLimit)
	case !slices.Contains(states, f.State):
		return fmt.Errorf("State: %.40q: want waiting, queued, active, dead, succeeded, cancelled or timed_out",
			f.State)
	}
	return nil
}

// Runs returns a page of runs, the newest first. It locks nothing. It returns ErrNoManifest or ErrNoGroup if the
// filter names a manifest or a group that does not exist.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]RunInfo, error) {
	list, err := s.runs(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return list, nil
}

func (t tables) runs(ctx context.Context, f RunFilter) (_ []RunInfo, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	var manifest, group int64
	if f.Manifest != "" {
		if manifest, err = t.manifestID(ctx, t.pool, f.Manifest); err != nil {
			return nil, err
		}
	}
	if f.Group != "" {
		if group, err = t.groupID(ctx, f.Group); err != nil {
			return nil, err
		}
	}
	low, high := f.ids()
	return t.listRuns(ctx, low, high, manifest, group, string(f.State), nullable(f.Since), nullable(f.Until), false,
		cmp.Or(f.Limit, standardListed))
}

func (t tables) listRuns(ctx context.Context, args ...any) ([]RunInfo, error) {
	rows, err := t.pool.Query(ctx, t.sql.Get("list_runs"), append([]any{pg.Planned}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRun)
}

func scanRun(row pgx.CollectableRow) (r RunInfo, err error) {
	var message *saga.ID
	var deadline, beat, ended *time.Time
	err = row.Scan(&r.ID, &r.Manifest, &r.Group, &r.Origin, &r.State, &r.Due, &r.Ready, &r.Priority, &r.Kind, &r.Body,
		&r.Attempt, &r.Refused,
		&message, &deadline, &beat, &r.Queued, &ended, &r.Error, &r.Note)
	if message != nil {
		r.Message = *message
	}
	for _, at := range []struct{ from, into *time.Time }{{deadline, &r.Deadline}, {beat, &r.Beat}, {ended, &r.Ended}} {
		if at.from != nil {
			*at.into = *at.from
		}
	}
	return r, err
}

// RunOf returns one run with its message and its last 1,000 attempts, the newest first. It returns ErrNoRun if there is
// none.
func (s *Store) RunOf(ctx context.Context, id saga.ID) (RunInfo, error) {
	list, err := s.listRuns(ctx, id, id, 0, 0, "", nil, nil, true, 1)
	if err == nil && len(list) == 0 {
		err = ErrNoRun
	}
	if err == nil {
		list[0].Attempts, err = s.attempts(ctx, id)
	}
	if err != nil {
		return RunInfo{}, fmt.Errorf("read run %s: %w", id, err)
	}
	return list[0], nil
}

func (t tables) attempts(ctx context.Context, run saga.ID) ([]Attempt, error) {
	rows, err := t.pool.Query(ctx, t.sql.Get("attempts"), pg.Planned, run, mostAttempts)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Attempt, err error) {
		var began, ended *time.Time
		err = row.Scan(&a.Attempt, &a.Message, &a.Sent, &began, &a.Worker, &ended, &a.Outcome, &a.Error)
		if began != nil {
			a.Began = *began
		}
		if ended != nil {
			a.Ended = *ended
		}
		return a, err
	})
}

// clockSlack is the assumed maximum difference between the database's clock and those of processes that make run ids.
const clockSlack = 24 * time.Hour

// ids limits the part of the index that is read. This works because an id begins with the time of its creation.
func (f RunFilter) ids() (low, high saga.ID) {
	for n := range high {
		high[n] = 0xff
	}
	if !f.Since.IsZero() {
		low = idAt(f.Since.Add(-clockSlack))
	}
	if !f.Until.IsZero() {
		high = idAt(f.Until.Add(clockSlack))
	}
	if !f.After.IsZero() && slices.Compare(f.After[:], high[:]) <= 0 {
		high = before(f.After)
	}
	return low, high
}

// idAt returns the lowest UUIDv7 of a time.
func idAt(t time.Time) (id saga.ID) {
	for n, ms := 5, t.UnixMilli(); n >= 0; n, ms = n-1, ms>>8 {
		id[n] = byte(ms)
	}
	return id
}

func before(id saga.ID) saga.ID {
	for n := len(id) - 1; n >= 0; n-- {
		id[n]--
		if id[n] != 0xff {
			break
		}
	}
	return id
}
