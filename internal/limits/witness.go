package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed witness.sql
var witnessText string

// witnessSQL is a statement of witness.sql, which names its own schema.
func witnessSQL(name string) string { return namedSQL(witnessText, "witness", name) }

// span is one run of a handler.
type span struct {
	slot         int
	epoch        int64
	worker       string
	began, ended time.Time
}

// change is one change of the limit: until asked the old one was in force, from done on the new one, and between them
// either.
type change struct {
	slots       int
	asked, done time.Time
}

type verdict struct {
	runs, above, stale, lost, doubled, kills, stops, starved, changes int

	unused, again time.Duration
}

func (v verdict) line(s settings) string {
	return fmt.Sprintf("limits: seconds=%.0f workers=%d runs=%d changes=%d kills=%d stops=%d above=%d stale=%d "+
		"lost=%d doubled=%d starved=%d unused=%.1fs again=%.1fs",
		s.length.Seconds(), s.workers, v.runs, v.changes, v.kills, v.stops, v.above, v.stale, v.lost, v.doubled,
		v.starved, v.unused.Seconds(), v.again.Seconds())
}

func (v verdict) broken() bool {
	return v.above+v.stale+v.lost+v.doubled+v.starved > 0 || v.unused > reuse || v.again > defaults || v.runs == 0
}

// judge reads what the witness wrote down.
func judge(ctx context.Context, pool *pgxpool.Pool) (v verdict, err error) {
	rows, _ := pool.Query(ctx, witnessSQL("spans"))
	spans, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s span, err error) {
		return s, row.Scan(&s.slot, &s.epoch, &s.worker, &s.began, &s.ended)
	})
	if err != nil {
		return v, fmt.Errorf("read the runs: %w", err)
	}
	rows, _ = pool.Query(ctx, witnessSQL("changes"))
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c change, err error) {
		return c, row.Scan(&c.slots, &c.asked, &c.done)
	})
	if err != nil {
		return v, fmt.Errorf("read the changes: %w", err)
	}
	err = pool.QueryRow(ctx, witnessSQL("counts"), backlog).Scan(&v.stale, &v.lost, &v.doubled, &v.runs, &v.kills,
		&v.stops, &v.starved)
	v.changes = len(changes)
	v.above = above(spans, changes)
	v.unused = unused(spans, changes)
	return v, err
}

// above counts the runs that began while as many others ran as were allowed.
func above(spans []span, changes []change) (n int) {
	for i, s := range spans {
		running := 1
		for _, other := range spans[:i] {
			if other.ended.After(s.began) {
				running++
			}
		}
		if running > allowed(changes, s.began) {
			n++
			fmt.Printf("above: slot %d epoch %d of %s began at %v as number %d of %d\n", s.slot, s.epoch, s.worker,
				s.began.Format(time.StampMicro), running, allowed(changes, s.began))
			for _, other := range spans[:i] {
				if other.ended.After(s.began) {
					fmt.Printf("  beside slot %d epoch %d of %s from %v to %v\n", other.slot, other.epoch, other.worker,
						other.began.Format(time.StampMicro), other.ended.Format(time.StampMicro))
				}
			}
		}
	}
	return n
}

// allowed is the largest limit that may have been in force when a handler that began at t was granted its slot, which
// was a little before.
func allowed(changes []change, t time.Time) (n int) {
	const grantedBefore = 500 * time.Millisecond
	for i, c := range changes {
		last := i+1 == len(changes)
		if c.asked.Before(t) && (last || changes[i+1].done.After(t.Add(-grantedBefore))) {
			n = max(n, c.slots)
		}
	}
	return n
}

// unused is the longest time in which less ran than was allowed.
func unused(spans []span, changes []change) (longest time.Duration) {
	if len(spans) == 0 || len(changes) == 0 {
		return 0
	}
	type moment struct {
		at    time.Time
		delta int
	}
	var moments []moment
	for _, s := range spans {
		moments = append(moments, moment{s.began, 1}, moment{s.ended, -1})
	}
	for _, c := range changes {
		moments = append(moments, moment{c.done, 0})
	}
	slices.SortFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	end := changes[len(changes)-1].asked // the last one is after the chaos
	running := 0
	var since time.Time
	for _, m := range moments {
		if m.at.After(end) {
			break
		}
		running += m.delta
		limit := least(changes, m.at)
		switch {
		case running >= limit:
			if !since.IsZero() {
				longest = max(longest, m.at.Sub(since))
			}
			since = time.Time{}
		case since.IsZero():
			since = m.at
		}
	}
	return longest
}

// least is the limit in force at t, the smaller one while it changes.
func least(changes []change, t time.Time) int {
	n := changes[0].slots
	for i, c := range changes {
		if !c.done.After(t) {
			n = c.slots
		}
		if i > 0 && c.asked.Before(t) && c.done.After(t) {
			n = min(n, c.slots)
		}
	}
	return n
}
