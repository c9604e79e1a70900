package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed witness.sql
var witnessText string

func witnessSQL(name string) string {
	schema, err := pg.ParseSchema("edda")
	if err != nil {
		panic(err)
	}
	statements, err := pg.Load(witnessText, schema)
	if err != nil {
		panic(err)
	}
	return statements.Get(name)
}

// verdict is what the tables say in the end.
type verdict struct {
	expected, missing, double, open, strange int64

	kills, stops, locks, jumps int
	caughtUp                   time.Duration
}

func (v verdict) broken() bool { return v.missing+v.double+v.open+v.strange > 0 }

func (v verdict) line(m mode) string {
	return fmt.Sprintf("schedule %s, %v: expected=%d firings=%d missing=%d double=%d open=%d strange=%d kills=%d stops=%d locks_lost=%d clock_jumps=%d caught_up=%v",
		m.name, m.length, v.expected, v.expected-v.missing, v.missing, v.double, v.open, v.strange, v.kills, v.stops, v.locks, v.jumps, v.caughtUp.Round(100*time.Millisecond))
}

// judge counts up to the horizon, a moment of the database's clock that all manifests have passed.
func (v *verdict) judge(ctx context.Context, pool *pgxpool.Pool, horizon time.Time) error {
	return pool.QueryRow(ctx, witnessSQL("judge"), horizon).Scan(&v.expected, &v.missing, &v.double, &v.open, &v.strange)
}

// catchUp waits until everything that was due until now has been handled, and returns that moment.
func (v *verdict) catchUp(ctx context.Context, pool *pgxpool.Pool) (horizon time.Time, err error) {
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&horizon); err != nil {
		return horizon, err
	}
	begun := time.Now()
	for {
		var manifests, runs int
		if err := pool.QueryRow(ctx, witnessSQL("behind"), horizon).Scan(&manifests, &runs); err != nil {
			return horizon, err
		}
		v.caughtUp = time.Since(begun)
		switch {
		case manifests+runs == 0:
			return horizon, nil
		case v.caughtUp > catchUpWithin:
			return horizon, nil // the judge tells what is missing
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return horizon, err
		}
	}
}

const catchUpWithin = 3 * time.Minute
