package crash

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// stored is a version of an instance as a trigger saw it.
type stored struct {
	op, tx  string
	version int64 // after the change; of a DELETE before it
	state   string
}

// judgeHistory compares the history with what triggers and handlers have written down: each version of each instance
// is there once, with its state, and each message with its fate as often as it met that.
func (a *arena) judgeHistory(ctx context.Context, q lab.Querier) error {
	schema, err := pg.ParseSchema(pg.DefaultSchema)
	if err != nil {
		return err
	}
	h := history.New(schema)
	versions, err := a.judgeVersions(ctx, q, h)
	if err != nil {
		return err
	}
	told, err := a.judgeMessages(ctx, q, h)
	a.Fact("versions", versions)
	a.Fact("told", told)
	return err
}

func (a *arena) judgeVersions(ctx context.Context, q lab.Querier, h *history.Store) (n int, err error) {
	var (
		id, page [16]byte
		v        stored
	)
	all, pages := map[saga.ID][]stored{}, map[saga.ID]saga.ID{}
	rows, err := q.Query(ctx, sql.Get("history_versions"))
	if err != nil {
		return 0, err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &v.op, &v.tx, &v.version, &v.state, &page}, func() error {
		all[id], pages[id] = append(all[id], v), page
		return nil
	})
	if err != nil {
		return 0, err
	}
	for id, seen := range all {
		timeline, _, err := h.Timeline(ctx, q, id, pages[id], 1_000_000)
		if err != nil {
			return n, err
		}
		n += a.compare(id, seen, timeline)
	}
	return n, nil
}

// compare returns how many versions there are.
func (a *arena) compare(id saga.ID, seen []stored, timeline []history.Version) (n int) {
	var want, got []string
	for n, v := range seen {
		switch {
		case v.op != "DELETE":
			want = append(want, fmt.Sprintf("%d %s", v.version, v.state))
		case n > 0 && seen[n-1].op == "INSERT" && seen[n-1].tx == v.tx: // it began and ended in one transaction
			want[len(want)-1] = "1 ended"
		default:
			want = append(want, fmt.Sprintf("%d ended", v.version+1))
		}
	}
	for _, v := range timeline {
		switch v.Change {
		case history.Began, history.Changed:
			got = append(got, fmt.Sprintf("%d %s", v.Version, v.State))
		case history.Ended, history.BeganAndEnded:
			got = append(got, fmt.Sprintf("%d ended", v.Version))
		}
	}
	a.Expect(slices.Equal(want, got), "untold", "instance %s: history has\n%v\nwant\n%v", id, got, want)
	return len(got)
}

// judgeMessages looks each message up, with the fate that it has in the ledger and in the tables of the engine.
func (a *arena) judgeMessages(ctx context.Context, q lab.Querier, h *history.Store) (n int, err error) {
	type place struct {
		id             [16]byte
		endpoint, fate string
		times          int
	}
	rows, err := q.Query(ctx, sql.Get("history_fates"))
	if err != nil {
		return 0, err
	}
	places, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		return p, row.Scan(&p.id, &p.endpoint, &p.fate, &p.times)
	})
	if err != nil {
		return 0, err
	}
	const atOnce = 500
	for some := range slices.Chunk(places, atOnce) {
		ids := make([]saga.ID, len(some))
		for n, p := range some {
			ids[n] = p.id
		}
		found, err := h.Messages(ctx, q, ids...)
		if err != nil {
			return n, err
		}
		for _, p := range some {
			times := 0
			for _, e := range found[p.id] {
				if e.Endpoint == p.endpoint && e.Fate.String() == p.fate {
					times++
				}
			}
			a.Expect(times == p.times, "untold", "history has %d entries of message %s that was %s at %s, want %d",
				times, saga.ID(p.id), p.fate, p.endpoint, p.times)
			n++
		}
	}
	return n, nil
}

// runHistory changes what is kept, fills the history to its limit and empties it, while workers are killed. Messages
// are judged as in every phase; the history itself is not, since parts of it are gone.
func runHistory(ctx context.Context, a *arena) error {
	a.heal()
	a.holes = true
	operator, err := operate.New(a.Pool, operate.Options{})
	if err != nil {
		return err
	}
	changes := 200
	if a.Quick {
		changes = 40
	}
	for n := range changes {
		if err := a.ensure(); err != nil {
			return err
		}
		if err := a.changeHistory(ctx, operator); err != nil {
			return err
		}
		if s := a.slots[a.Random.IntN(len(a.slots))]; n%10 == 0 {
			_, _ = s.kill(ctx, onlyInFlight)
		}
		if err := run.Sleep(ctx, a.Between(10*time.Millisecond, 60*time.Millisecond)); err != nil {
			return err
		}
	}
	a.Fact("changes", changes)
	return a.resetHistory(ctx, operator)
}

func (a *arena) changeHistory(ctx context.Context, o *operate.Operator) error {
	switch a.Random.IntN(8) {
	case 0:
		for _, statement := range []string{"history_empty", "history_empty_ranges", "history_empty_lives"} {
			if err := a.Exec(ctx, sql.Get(statement)); err != nil {
				return err
			}
		}
		return nil
	case 1:
		return o.SetKeep(ctx, string(ring.History), 0, 1<<20)
	case 2:
		return o.SetKeep(ctx, string(ring.History), 0, 0)
	case 3:
		return a.Exec(ctx, sql.Get("history_rotate"))
	}
	set, err := o.Endpoints().List(ctx)
	if err != nil || len(set) == 0 {
		return err
	}
	level := history.Level(a.Random.IntN(int(history.Bodies) + 1))
	return o.Endpoints().SetHistory(ctx, set[a.Random.IntN(len(set))].Endpoint,
		history.Options{Level: level, Sample: float64(a.Random.IntN(3)) / 2})
}

// resetHistory lets the next phase be judged with its history.
func (a *arena) resetHistory(ctx context.Context, o *operate.Operator) error {
	if err := o.SetKeep(ctx, string(ring.History), 0, 0); err != nil {
		return err
	}
	return a.Exec(ctx, sql.Get("history_unset"))
}
