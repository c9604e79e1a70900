package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgdev"
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

// witness asks the database, and asks again when that has lost its sessions, as was seen once: a preloaded library that
// is not made for a server may end one of its processes, and Postgres then ends them all. The promise holds for that as
// well.
type witness struct {
	pool   *pgxpool.Pool
	server *pgdev.Server
}

const patience = 20 * time.Second

func (w witness) ask(ctx context.Context, sql string, args []any, into ...any) error {
	for end := time.Now().Add(patience); ; {
		err := w.pool.QueryRow(ctx, sql, args...).Scan(into...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w; the server: %s", err, w.server.LogTail())
		}
		fmt.Printf("  asked in vain, and once more: %v; the server: %s\n", err, w.server.LogTail())
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// verdict is what the tables say in the end.
type verdict struct {
	expected, missing, double, open, strange int64

	kills, stops, locks, jumps int
	caughtUp                   time.Duration
}

func (v verdict) broken() bool { return v.missing+v.double+v.open+v.strange > 0 }

func (v verdict) line(m mode) string {
	return fmt.Sprintf("schedule %s, %v: expected=%d firings=%d missing=%d double=%d open=%d strange=%d kills=%d "+
		"stops=%d locks_lost=%d clock_jumps=%d caught_up=%v",
		m.name, m.length, v.expected, v.expected-v.missing, v.missing, v.double, v.open, v.strange, v.kills, v.stops,
		v.locks, v.jumps, v.caughtUp.Round(100*time.Millisecond))
}

// judge counts up to the horizon, a moment of the database's clock that all manifests have passed.
func (v *verdict) judge(ctx context.Context, w witness, horizon time.Time) error {
	return w.ask(ctx, witnessSQL("judge"), []any{horizon}, &v.expected, &v.missing, &v.double, &v.open, &v.strange)
}

// catchUp waits until everything that was due until now has been handled, and returns that moment.
func (v *verdict) catchUp(ctx context.Context, w witness) (horizon time.Time, err error) {
	if err := w.ask(ctx, `SELECT clock_timestamp()`, nil, &horizon); err != nil {
		return horizon, err
	}
	begun := time.Now()
	for {
		var manifests, runs int
		if err := w.ask(ctx, witnessSQL("behind"), []any{horizon}, &manifests, &runs); err != nil {
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
