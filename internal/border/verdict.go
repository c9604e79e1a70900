package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// one is a message by which the checker knows it.
type one struct {
	Key string
	N   int64
}

// verdict is what the checker found.
type verdict struct {
	told, handled                 int
	lost, double, disorder, never int // never: handled, and nobody told it
	dead                          int

	gone    []one        // what was lost
	late    [][2]one     // what entered behind a later one of its key, and that
	entered map[one]bool // what entered the queue there
}

func (v verdict) String() string {
	return fmt.Sprintf("lost=%d double=%d disorder=%d never_told=%d dead=%d", v.lost, v.double, v.disorder, v.never,
		v.dead)
}

func (v verdict) broken() bool { return v.lost+v.double+v.disorder+v.never+v.dead > 0 || v.told == 0 }

// judge reads both databases and compares.
func judge(ctx context.Context, g *ground) (v verdict, err error) {
	both, err := g.sides(ctx)
	if err != nil {
		return v, err
	}
	defer both.close()
	told, err := read(ctx, both.here.pool, "told")
	if err != nil {
		return v, err
	}
	entered, err := read(ctx, both.there.pool, "entered")
	if err != nil {
		return v, err
	}
	handled, err := read(ctx, both.there.pool, "handled")
	if err != nil {
		return v, err
	}
	v = compare(told, entered, handled)
	for _, pool := range []*pgxpool.Pool{both.here.pool, both.there.pool} {
		dead := 0
		if err := pool.QueryRow(ctx, sql("dead")).Scan(&dead); err != nil {
			return v, fmt.Errorf("count the dead letters: %w", err)
		}
		v.dead += dead
	}
	return v, nil
}

func read(ctx context.Context, pool *pgxpool.Pool, name string) ([]one, error) {
	rows, err := pool.Query(ctx, sql(name))
	if err != nil {
		return nil, fmt.Errorf("read what was %s: %w", name, err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[one])
}

// compare counts. entered is in the order in which the messages entered the queue.
func compare(told, entered, handled []one) verdict {
	v := verdict{told: len(told), handled: len(handled)}
	times := map[one]int{}
	for _, m := range handled {
		times[m]++
	}
	known := map[one]bool{}
	for _, m := range told {
		known[m] = true
		if times[m] == 0 {
			v.lost++
			v.gone = append(v.gone, m)
		}
	}
	for m, n := range times {
		if v.double += n - 1; !known[m] {
			v.never++
		}
	}
	seen, last := map[one]bool{}, map[string]int64{}
	for _, m := range entered {
		switch before, any := last[m.Key]; {
		case seen[m]:
			v.double++
		case any && m.N < before:
			v.disorder++
			v.late = append(v.late, [2]one{m, {m.Key, before}})
		default:
			last[m.Key] = m.N
		}
		seen[m] = true
	}
	v.entered = seen
	return v
}
