package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/plan"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

const (
	cycleManifests = 1000                  // that one cycle loads
	cycleReaps     = 1000                  // runs that one cycle ends
	lockedPause    = 20 * time.Millisecond // before a cycle that looks at manifests again that were locked
	// after a cycle that queued something: due times that lie close together share the next one
	breath = 20 * time.Millisecond
)

// cycle is what one evaluation found and did.
type cycle struct {
	elsewhere bool // another server is evaluating
	loaded    int
	reaped    int
	decided   int // manifests that there was something to write about
	held      int // of those, the ones that nobody had locked or changed
	queued    int // runs
}

var errElsewhere = errors.New("another server is evaluating")

// evaluate runs cycles until ctx ends, or the lease is in other hands.
func (s *Scheduler) evaluate(ctx context.Context, t lease.Term) error {
	for ctx.Err() == nil {
		wait := run.Jitter(s.options.Evaluate)
		c, err := s.cycle(ctx, t)
		switch {
		case errors.Is(err, lease.ErrFenced):
			return err
		case err != nil && ctx.Err() == nil:
			s.calm.Warn("edda: an evaluation failed, and changed nothing", "error", err)
		case err == nil:
			if c.queued > 0 && c.loaded < cycleManifests {
				_ = run.Sleep(ctx, breath)
			}
			wait = min(wait, s.untilDue(ctx, c))
		}
		run.Wait(ctx, wait, s.due)
	}
	return nil
}

// cycle is one evaluation. All of it commits, or nothing. It does no I/O but SQL, and no manifest waits for another.
func (s *Scheduler) cycle(ctx context.Context, t lease.Term) (c cycle, err error) {
	err = s.inTx(ctx, t, func(tx pgx.Tx) error {
		if !s.guards.noLock {
			alone := false
			if err := tx.QueryRow(ctx, s.sql.Get("try_lock"), s.lockKey).Scan(&alone); err != nil {
				return fmt.Errorf("try the lock of the cycle: %w", err)
			}
			if !alone {
				return errElsewhere // rolls back
			}
		}
		s.log.Debug("edda: an evaluation cycle begins")
		return s.turn(ctx, tx, &c)
	})
	switch {
	case errors.Is(err, errElsewhere):
		s.log.Debug("edda: another server is evaluating, this cycle is skipped")
		return cycle{elsewhere: true}, nil
	case err != nil:
		return cycle{}, err
	}
	s.log.Debug("edda: an evaluation cycle is complete", "due", c.loaded, "timed_out", c.reaped, "queued", c.queued)
	if c.queued > 0 {
		s.call(ctx, s.ready, dispatchPayload)
	}
	return c, nil
}

// turn is the fixed order of a cycle: load, reap, decide, queue.
func (s *Scheduler) turn(ctx context.Context, tx pgx.Tx, c *cycle) error {
	loaded, now, err := s.load(ctx, tx)
	if err != nil {
		return fmt.Errorf("load what is due: %w", err)
	}
	if s.guards.loaded != nil {
		s.guards.loaded()
	}
	c.loaded = len(loaded)
	if err := s.reapAside(ctx, tx, c); err != nil {
		return err
	}
	decisions := s.decideAll(loaded, now)
	if c.decided = len(decisions); c.decided == 0 {
		return nil
	}
	return s.queue(ctx, tx, decisions, c)
}

// firing is a manifest whose due time has come.
type firing struct {
	id, version int64
	name        string
	due         time.Time
	follows     bool
	definition  []byte
}

func (s *Scheduler) load(ctx context.Context, tx pgx.Tx) (loaded []firing, now time.Time, err error) {
	rows, err := tx.Query(ctx, s.sql.Get("load"), cycleManifests, s.aside.list())
	if err != nil {
		return nil, now, err
	}
	loaded, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f firing, err error) {
		err = row.Scan(&f.id, &f.version, &f.name, &f.due, &f.follows, &f.definition, &now)
		return f, err
	})
	return loaded, now, err
}

// reapAside is reap, whose failure does not keep manifests from firing: a follower of one of them may be locked for
// long.
func (s *Scheduler) reapAside(ctx context.Context, tx pgx.Tx, c *cycle) error {
	err := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) (err error) {
		c.reaped, err = s.reap(ctx, point)
		return err
	})
	if err == nil || tx.Conn().IsClosed() || ctx.Err() != nil {
		return err
	}
	c.reaped = 0
	s.calm.Warn("edda: runs that took too long were not ended", "error", err)
	return nil
}

// reap ends runs whose time is over, as timed out.
func (s *Scheduler) reap(ctx context.Context, tx pgx.Tx) (ended int, err error) {
	if err := tx.QueryRow(ctx, s.sql.Get("reap"), cycleReaps).Scan(&ended); err != nil {
		return 0, fmt.Errorf("end runs that took too long: %w", err)
	}
	return ended, nil
}

// decision is what becomes of one manifest. Its run is for fire, none when that is zero; next is zero when nothing
// follows.
type decision struct {
	firing
	run               saga.ID
	fire, ready, next time.Time
}

// decideAll leaves out what this server cannot evaluate.
func (s *Scheduler) decideAll(loaded []firing, now time.Time) []decision {
	decisions := make([]decision, 0, len(loaded))
	for _, f := range loaded {
		d, err := f.decide(now)
		if err != nil {
			s.setAside(f, err)
			continue
		}
		decisions = append(decisions, d)
	}
	return decisions
}

func (s *Scheduler) setAside(f firing, err error) {
	s.aside.put(f.id)
	s.log.Error("edda: a manifest cannot be evaluated, and is passed over for a while", "manifest", f.name, "due",
		f.due, "again_in", asideFor, "error", err)
}

func (f firing) decide(now time.Time) (decision, error) {
	p, err := plan.Parse(f.definition)
	if err != nil {
		return decision{}, err
	}
	v := p.Decide(f.due, now)
	d := decision{firing: f, fire: v.Fire, next: v.Next}
	if !v.Fire.IsZero() {
		d.run, d.ready = newRunID(), v.Fire.Add(p.Jitter(f.name, v.Fire))
	}
	return d, nil
}

// queue writes what was decided. When the database refuses some of it, each manifest it refuses is found and left out:
// the others are queued. An error of another kind ends the cycle.
func (s *Scheduler) queue(ctx context.Context, tx pgx.Tx, all []decision, c *cycle) error {
	attempt := cycle{}
	err := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) error { return s.write(ctx, point, all, &attempt) })
	switch {
	case err == nil:
		c.held += attempt.held
		c.queued += attempt.queued
		return nil
	case pg.ClassOf(err) != pg.Other || pg.Code(err) == "":
		return fmt.Errorf("queue runs: %w", err)
	case len(all) == 1:
		s.setAside(all[0].firing, err)
		return nil
	}
	half := len(all) / 2
	if err := s.queue(ctx, tx, all[:half], c); err != nil {
		return err
	}
	return s.queue(ctx, tx, all[half:], c)
}

func (s *Scheduler) write(ctx context.Context, tx pgx.Tx, all []decision, c *cycle) error {
	var (
		manifests, versions     []int64
		runs                    []*saga.ID
		due, fires, ready, next []*time.Time
		made                    []int64
	)
	for _, d := range all {
		manifests, versions, due = append(manifests, d.id), append(versions, d.version), append(due, &d.due)
		runs = append(runs, orNull(d.run))
		fires, ready, next = append(fires, orNull(d.fire)), append(ready, orNull(d.ready)), append(next, orNull(d.next))
	}
	row := tx.QueryRow(ctx, s.sql.Get("queue"), manifests, versions, due, runs, fires, ready, next)
	if err := row.Scan(&c.held, &made); err != nil {
		return err
	}
	c.queued = len(made)
	s.tellLeftOut(ctx, all, made)
	return nil
}

func (s *Scheduler) tellLeftOut(ctx context.Context, all []decision, made []int64) {
	if len(made) == len(all) || !s.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, d := range all {
		if !d.fire.IsZero() && !slices.Contains(made, d.id) {
			s.log.Debug("edda: a scheduled run is there already, or its manifest is locked or was changed", "manifest",
				d.name, "due", d.fire)
		}
	}
}

func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// untilDue is when the next cycle is worth its while, as far as this server knows.
func (s *Scheduler) untilDue(ctx context.Context, c cycle) time.Duration {
	switch {
	case c.elsewhere:
		return s.options.Evaluate
	case c.reaped > 0, c.loaded == cycleManifests && c.held > 0:
		return 0
	case c.held < c.decided:
		return lockedPause
	}
	return s.untilNext(ctx, s.sql.Get("next_due"))
}

// untilNext asks how long it is until the next moment of a kind. Whatever goes wrong, there is the poll.
func (s *Scheduler) untilNext(ctx context.Context, sql string) time.Duration {
	var wait *time.Duration
	if err := s.pool.QueryRow(ctx, sql).Scan(&wait); err != nil || wait == nil {
		return longestPoll
	}
	return max(0, *wait)
}
