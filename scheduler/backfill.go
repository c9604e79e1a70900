package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Period is the range of due times that a backfill fills.
type Period struct {
	From, Until time.Time // due times from From on, before Until, and before the next due time of the schedule
	Max         int       // due times of one call; 0 is 1,000, at most MaxOccurrences
	DryRun      bool      // write nothing, and return the due times of the period
}

// Backfilled is the result of a backfill.
type Backfilled struct {
	Queued  int         // new runs
	Present int         // due times that already have a run
	Times   []time.Time // only of a DryRun: all due times, with and without a run
	Next    time.Time   // first due time that is left for the next call; zero if nothing is left
}

const (
	standardBackfill = 1000
	backfillStep     = 500
)

// Backfill queues a run of origin "backfill" for each due time of a manifest in a past period that has no run,
// because it was missed or lies before the declaration. A due time gets one run however often Backfill is called, as
// long as the record of the run is kept. The runs do not wait for each other, and the schedule does not wait for
// them: Group.Max limits how many are active.
//
// Backfill works in steps of 500 due times, each in a transaction of its own. If it returns an error, the result counts
// the completed steps; call it again to continue. It returns ErrNoManifest if there is no such manifest, or it is an
// orphan.
func (s *Store) Backfill(ctx context.Context, manifest string, p Period) (done Backfilled, err error) {
	b, err := s.fillable(ctx, manifest, &p)
	if err == nil {
		done, err = s.backfill(ctx, b, p)
	}
	if err != nil {
		return done, fmt.Errorf("backfill manifest %.140q: %w", manifest, err)
	}
	return done, nil
}

// fillable reads the schedule of a manifest, checks the period and fills in its default.
func (s *Store) fillable(ctx context.Context, manifest string, p *Period) (m schedule, err error) {
	if p.Max == 0 {
		p.Max = standardBackfill
	}
	if p.Max < 0 || p.Max > MaxOccurrences {
		return m, fmt.Errorf("Max: %d: want 0 to %d", p.Max, MaxOccurrences)
	}
	m, err = s.schedule(ctx, s.pool, manifest)
	switch {
	case err != nil:
		return m, err
	case m.orphaned:
		return m, fmt.Errorf("it is an orphan: declare it again, or remove it: %w", ErrNoManifest)
	case p.From.IsZero() || p.Until.IsZero() || !p.From.Before(p.Until):
		return m, fmt.Errorf("from %v until %v: want two times, the first before the second", p.From, p.Until)
	}
	return m, nil
}

// schedule is the part of a stored manifest that decides when it is due.
type schedule struct {
	id       int64
	name     string
	plan     *plan.Plan
	due      time.Time // zero is never
	orphaned bool
	now      time.Time
}

func (t tables) schedule(ctx context.Context, db queryer, name string) (m schedule, err error) {
	text, due := "", (*time.Time)(nil)
	m.name = name
	err = db.QueryRow(ctx, t.sql.Get("stored_schedule"), pg.Planned, name).Scan(&m.id, &text, &due, &m.orphaned, &m.now)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, ErrNoManifest
	}
	if err != nil {
		return m, err
	}
	if due != nil {
		m.due = *due
	}
	d, known := plan.Read([]byte(text))
	if m.plan, err = d.Compile(); err != nil || !known {
		if err == nil {
			err = errors.New("it has fields that this release does not have: deploy the newer program")
		}
		return m, fmt.Errorf("its definition is of a different release: %w", err)
	}
	return m, nil
}

// times returns at most p.Max due times of the period, and the first one that is left; zero if nothing is left.
func (m schedule) times(p Period) (times []time.Time, next time.Time, err error) {
	until := p.Until
	for _, end := range []time.Time{m.now, m.due} {
		if !end.IsZero() && end.Before(until) {
			until = end
		}
	}
	times, next, ok := m.plan.Fill(m.due, p.From, until, p.Max)
	if !ok {
		return nil, next, errors.New("it has no due times to fill: trigger it instead")
	}
	return times, next, nil
}

func (t tables) backfill(ctx context.Context, m schedule, p Period) (done Backfilled, err error) {
	times, next, err := m.times(p)
	if err != nil {
		return done, err
	}
	if done.Next = next; p.DryRun {
		done.Times = times
		return done, nil
	}
	for len(times) > 0 {
		step := times[:min(len(times), backfillStep)]
		ids := make([]saga.ID, len(step))
		for n := range ids {
			ids[n] = dispatch.NewRunID()
		}
		queued, called := 0, ""
		err := t.change(ctx, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, t.sql.Get("backfill"), m.id, ids, step).Scan(&queued, &called); err != nil {
				return err
			}
			return t.audit.addRuns(ctx, tx, audit.Change{Verb: "manifest.backfill", Target: m.name}, queued)
		})
		if err != nil {
			return done, fmt.Errorf("queue runs: %w", err)
		}
		done.Queued, done.Present = done.Queued+queued, done.Present+len(step)-queued
		times = times[len(step):]
	}
	return done, nil
}

// Next returns the next n due times of a stored manifest: when it would fire if it were live, nothing failed and no
// run were late. It returns fewer if the schedule ends before, and nothing for OnDemand, After and Dormant. n is 1 to
// MaxOccurrences. It returns ErrNoManifest if the manifest does not exist. It writes nothing.
func (s *Store) Next(ctx context.Context, manifest string, n int) (times []time.Time, err error) {
	if n < 1 || n > MaxOccurrences {
		return nil, fmt.Errorf("next of manifest %.140q: %d due times: want 1 to %d", manifest, n, MaxOccurrences)
	}
	err = pgx.BeginTxFunc(ctx, s.pool, readOnly, func(tx pgx.Tx) error {
		m, err := s.schedule(ctx, tx, manifest)
		if err == nil {
			times = m.next(n)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("next of manifest %.140q: %w", manifest, err)
	}
	return times, nil
}

func (m schedule) next(n int) []time.Time {
	if m.due.IsZero() {
		return nil
	}
	due := m.due.In(m.plan.Zone())
	return append([]time.Time{due}, m.plan.Next(due, n-1)...)
}
