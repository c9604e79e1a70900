package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
)

const (
	repairRows = 1000 // rows that one statement repairs
	repairMost = 100  // statements of a step in one sweep, so that the next step has its turn
	orphanRows = 100

	mostOrphans  = 10_000 // orphans that are kept
	mostReleases = 100    // releases of an owner that no program runs with
)

// Swept describes one reconciliation.
type Swept struct {
	Every time.Duration
	Took  time.Duration
	Ended time.Time // zero before the first has ended
}

// sweeper repairs runs, followers and orphans that other loops left behind.
type sweeper struct {
	*core
	reminded int64                 // the last follower that the sweep has read; used by the sweep only
	swept    atomic.Pointer[Swept] // the last reconciliation of this process

	lost, late []ending // of the transaction of a step; used by the sweep only
}

// run sweeps at intervals, until ctx ends or a different server has the lease.
func (s *sweeper) run(ctx context.Context, t lease.Term) error {
	for run.Sleep(ctx, run.Jitter(s.options.Reconcile)) == nil {
		began := time.Now()
		err := s.sweep(ctx, t)
		s.noteSweep(began)
		switch {
		case errors.Is(err, lease.ErrFenced):
			return err
		case err != nil && ctx.Err() == nil:
			s.calm.Warn("edda: reconciling failed in part", "error", err)
		}
	}
	return nil
}

// noteSweep records how long a sweep took. A sweep that takes longer than its interval is too much for one server.
func (s *sweeper) noteSweep(began time.Time) {
	last := Swept{Every: s.options.Reconcile, Took: time.Since(began), Ended: time.Now()}
	s.swept.Store(&last)
	if last.Took > last.Every {
		s.log.Warn("edda: reconciling took longer than its interval", "took", last.Took, "every", last.Every)
	}
}

// sweep runs each step until there is nothing left to do. Each step reads the current state, in bounded transactions
// of its own, and does nothing where it was done before. If one fails, the others run all the same.
func (s *sweeper) sweep(ctx context.Context, t lease.Term) error {
	var faults []error
	for _, step := range []struct {
		what string
		once func(ctx context.Context, tx pgx.Tx) (done int, full int, err error)
	}{
		{"end runs without a sign of life", s.lose},
		{"end runs that took too long", func(ctx context.Context, tx pgx.Tx) (int, int, error) {
			n, late, err := s.reap(ctx, tx)
			s.late = late
			return n, cycleReaps, err
		}},
		{"remind followers", s.remind},
		{"delete the runs of orphans", s.emptyOrphans},
		{"delete orphans", s.dropOrphans},
		{"delete programs that do not renew their declaration", s.buryPrograms},
		{"forget releases", s.forgetReleases},
	} {
		err := s.repeat(ctx, t, step.what, step.once)
		if errors.Is(err, lease.ErrFenced) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", step.what, err))
		}
	}
	return errors.Join(faults...)
}

// repeat runs a step in transactions of the term until one finds less than a full batch.
func (s *sweeper) repeat(ctx context.Context, t lease.Term, what string,
	once func(context.Context, pgx.Tx) (int, int, error)) error {
	total := 0
	defer func() {
		if total > 0 {
			s.log.Info("edda: reconciled", "step", what, "rows", total)
		}
	}()
	for range repairMost {
		var done, full int
		s.lost, s.late = nil, nil
		err := s.inTx(ctx, t, func(tx pgx.Tx) (err error) {
			done, full, err = once(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		s.tell("edda: an attempt of a run is lost: its handler gave no sign of life", s.lost)
		s.tell("edda: a run took longer than the Timeout of its manifest, and is timed out", s.late)
		if total += done; done < full {
			return nil
		}
	}
	return nil
}

// lose ends attempts whose handler has stopped sending heartbeats: the run is tried again, and commits of the lost
// handler are refused.
func (s *sweeper) lose(ctx context.Context, tx pgx.Tx) (done, full int, err error) {
	done, s.lost, err = scanEndings(tx.QueryRow(ctx, s.sql.Get("lost"), repairRows, s.options.LostAfter.Microseconds()))
	return done, repairRows, err
}

// remind continues where its last call ended, and starts again after the last follower: a sweep reads a hundred
// thousand at most.
func (s *sweeper) remind(ctx context.Context, tx pgx.Tx) (done, full int, err error) {
	var looked int
	var last int64
	if err := tx.QueryRow(ctx, s.sql.Get("remind"), repairRows, s.reminded).Scan(&done, &looked, &last); err != nil {
		return 0, 0, err
	}
	if done > 0 {
		s.due.Send()
	}
	if s.reminded = last; looked < repairRows {
		s.reminded = 0
		return done, done + 1, nil
	}
	return done, done, nil
}

// kept returns how long an orphan keeps its record of firings and the settings of operators, and a release its
// number.
func (s *sweeper) kept() time.Duration { return max(s.options.Retention, s.options.OrphanGrace) }

func (s *sweeper) forgottenBefore(ctx context.Context, tx pgx.Tx) (at time.Time, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("forgotten_before"), s.kept().Microseconds(),
		s.options.OrphanGrace.Microseconds(), mostOrphans).Scan(&at)
	return at, err
}

func (s *sweeper) emptyOrphans(ctx context.Context, tx pgx.Tx) (done, full int, err error) {
	before, err := s.forgottenBefore(ctx, tx)
	if err != nil {
		return 0, 0, err
	}
	tag, err := tx.Exec(ctx, s.sql.Get("empty_orphan"), before, repairRows)
	return int(tag.RowsAffected()), repairRows, err
}

func (s *sweeper) dropOrphans(ctx context.Context, tx pgx.Tx) (done, full int, err error) {
	before, err := s.forgottenBefore(ctx, tx)
	if err != nil {
		return 0, 0, err
	}
	rows, err := tx.Query(ctx, s.sql.Get("drop_orphan"), before, orphanRows)
	if err != nil {
		return 0, 0, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		s.log.Info("edda: an orphaned manifest was deleted", "manifest", name)
	}
	return len(names), orphanRows, err
}

func (s *sweeper) buryPrograms(ctx context.Context, tx pgx.Tx) (done, full int, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("bury_programs"), repairRows).Scan(&done)
	return done, repairRows, err
}

func (s *sweeper) forgetReleases(ctx context.Context, tx pgx.Tx) (done, full int, err error) {
	tag, err := tx.Exec(ctx, s.sql.Get("forget_releases"), s.kept().Microseconds(),
		s.options.OrphanGrace.Microseconds(), mostReleases, repairRows)
	return int(tag.RowsAffected()), repairRows, err
}
