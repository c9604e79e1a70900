package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ending is a run, or an attempt, that timed out or was lost.
type ending struct {
	manifest string
	run      saga.ID
	attempt  int32
	dead     bool // it is not sent again
}

// scanEndings reads the result of the statements reap and lost.
func scanEndings(row pgx.Row) (ended int, all []ending, err error) {
	var names []string
	var runs []saga.ID
	var attempts []int32
	var dead []bool
	err = row.Scan(&ended, &names, &runs, &attempts, &dead)
	for n, name := range names {
		all = append(all, ending{name, runs[n], attempts[n], dead[n]})
	}
	return ended, all, err
}

const mostTold = 20 // lines about one cycle or sweep

// tell logs endings after their commit. If there are too many, the last line has the number of the others.
func (c *core) tell(text string, all []ending) {
	for n, e := range all[:min(len(all), mostTold)] {
		args := []any{"manifest", e.manifest, "run", e.run, "attempt", e.attempt, "dead", e.dead}
		if more := len(all) - mostTold; n == mostTold-1 && more > 0 {
			args = append(args, "more", more)
		}
		c.log.Warn(text, args...)
	}
}

// toldEvery is how often a manifest is logged whose due times pass without a run: each of its runs may take longer
// than its interval.
const toldEvery = 10 * time.Minute

// tellMissed logs due times that passed without a run.
func (e *evaluator) tellMissed(all []decision) {
	now := time.Now()
	for id, at := range e.told {
		if now.Sub(at) >= toldEvery {
			delete(e.told, id)
		}
	}
	lines := 0
	for _, d := range all {
		if _, told := e.told[d.id]; told || lines == mostTold {
			continue
		}
		if e.told == nil {
			e.told = map[int64]time.Time{}
		}
		e.told[d.id] = now
		lines++
		e.log.Warn("edda: due times of a manifest passed without a run", "manifest", d.name, "due", d.due, "missed",
			d.missed)
	}
}

// Trouble is a kind of unexpected event, with the schedules that it happened to.
type Trouble struct {
	Kind      string   // dead, timed_out, lost, skipped or orphan
	Manifests []string // the first three
	Of        int      // number of manifests
	Times     int64
	Since     time.Time
}

// Troubles returns a Trouble for each kind that exists: dead runs, and events within the last day. Counts of each
// kind end at 1,000 runs or manifests.
func Troubles(ctx context.Context, db pg.Queryer, schema pg.Schema) ([]Trouble, error) {
	rows, err := db.Query(ctx, pg.Load(statements, schema).Get("troubles"))
	if err != nil {
		return nil, fmt.Errorf("count the events of manifests: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Trouble, err error) {
		err = row.Scan(&t.Kind, &t.Manifests, &t.Of, &t.Times, &t.Since)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("count the events of manifests: %w", err)
	}
	return all, nil
}
