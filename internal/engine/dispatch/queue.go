package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// decision says what happens to one manifest. fire is the due time of its run, or zero without a run; next is zero if
// nothing follows.
type decision struct {
	firing
	run               saga.ID
	fire, ready, next time.Time
	missed            int // due times that passed without a run
}

// decideAll leaves out manifests that this server cannot evaluate.
func (e *evaluator) decideAll(loaded []firing, now time.Time) []decision {
	decisions := make([]decision, 0, len(loaded))
	for _, f := range loaded {
		d, err := f.decide(now)
		if err != nil {
			e.passOver(f, err)
			continue
		}
		decisions = append(decisions, d)
	}
	return decisions
}

func (e *evaluator) passOver(f firing, err error) {
	e.backoff.add(f.id)
	e.log.Error("edda: a manifest cannot be evaluated, and is skipped for a while", "manifest", f.name, "due",
		f.due, "again_in", backoffFor, "error", err)
}

func (f firing) decide(now time.Time) (decision, error) {
	p, err := plan.Parse(f.definition)
	if err != nil {
		return decision{}, err
	}
	v := p.Decide(f.due, now)
	d := decision{firing: f, fire: v.Fire, next: v.Next, missed: v.Missed}
	if !v.Fire.IsZero() {
		d.run, d.ready = NewRunID(), v.Fire.Add(p.Jitter(f.name, v.Fire))
	}
	return d, nil
}

// queue writes the decisions. If the database refuses some of them, it finds each of those manifests and leaves it
// out: the others are queued. Any other error ends the cycle.
func (e *evaluator) queue(ctx context.Context, tx pgx.Tx, all []decision, c *cycle) error {
	attempt := cycle{}
	err := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) error { return e.write(ctx, point, all, &attempt) })
	switch {
	case err == nil:
		c.held += attempt.held
		c.queued += attempt.queued
		c.missed = append(c.missed, attempt.missed...)
		return nil
	case pgerr.ClassOf(err) != pgerr.Other || pgerr.Code(err) == "":
		return fmt.Errorf("queue runs: %w", err)
	case len(all) == 1:
		e.passOver(all[0].firing, err)
		return nil
	}
	half := len(all) / 2
	if err := e.queue(ctx, tx, all[:half], c); err != nil {
		return err
	}
	return e.queue(ctx, tx, all[half:], c)
}

func (e *evaluator) write(ctx context.Context, tx pgx.Tx, all []decision, c *cycle) error {
	var (
		manifests, versions     []int64
		runs                    []*saga.ID
		due, fires, ready, next []*time.Time
		missed, made, skipped   []int64
	)
	for _, d := range all {
		manifests, versions, due = append(manifests, d.id), append(versions, d.version), append(due, &d.due)
		runs = append(runs, orNull(d.run))
		missed = append(missed, int64(d.missed))
		fires, ready, next = append(fires, orNull(d.fire)), append(ready, orNull(d.ready)), append(next, orNull(d.next))
	}
	row := tx.QueryRow(ctx, e.sql.Get("queue"), manifests, versions, due, runs, fires, ready, next, missed)
	if err := row.Scan(&c.held, &made, &skipped); err != nil {
		return err
	}
	for _, d := range all {
		if d.missed > 0 && slices.Contains(skipped, d.id) {
			c.missed = append(c.missed, d)
		}
	}
	c.queued = len(made)
	e.logLeftOut(ctx, all, made)
	return nil
}

func (e *evaluator) logLeftOut(ctx context.Context, all []decision, made []int64) {
	if len(made) == len(all) || !e.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, d := range all {
		if !d.fire.IsZero() && !slices.Contains(made, d.id) {
			e.log.Debug("edda: a scheduled run exists already, or its manifest is locked or has changed", "manifest",
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
