package limit_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/limit"
	"github.com/jackc/pgx/v5/pgxpool"
)

// world is a migrated schema of one test, in which processes share the limit exports.
type world struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
}

func open(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	return &world{T: t, pool: pool, schema: schema}
}

// process returns a Limiter that behaves like one of a separate process.
func (w *world) process(change ...func(o *limit.Options)) *limit.Limiter {
	w.Helper()
	return w.processOn(w.pool, change...)
}

func (w *world) processOn(pool *pgxpool.Pool, change ...func(o *limit.Options)) *limit.Limiter {
	w.Helper()
	o := limit.Options{Schema: w.schema.Name(), Lease: time.Minute, Logger: slog.New(slog.DiscardHandler),
		PollOnly: pgdev.Pooled()}
	for _, c := range change {
		c(&o)
	}
	l, err := limit.New(pool, o)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// lasting sets a Lease of d.
func lasting(d time.Duration) func(o *limit.Options) { return func(o *limit.Options) { o.Lease = d } }

// acquire takes a free slot.
func (w *world) acquire(l *limit.Limiter, n int) *limit.Slot {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), pgdev.Patience(20*time.Second))
	defer cancel()
	s, err := l.Acquire(ctx, "exports", n)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) release(s *limit.Slot) {
	w.Helper()
	if err := s.Release(); err != nil {
		w.Error(err)
	}
}

func (w *world) exec(sql string) {
	w.Helper()
	pgtest.Exec(w.T, w.pool, w.schema.Render(sql))
}

func (w *world) number(sql string) (n int64) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), w.schema.Render(sql)).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) until(what string, done func() bool) {
	w.Helper()
	for began := time.Now(); !done(); <-time.After(5 * time.Millisecond) {
		if time.Since(began) > pgdev.Patience(20*time.Second) {
			w.Fatalf("waited in vain until %s", what)
		}
	}
}

// untilWaiting waits until n callers are in line.
func (w *world) untilWaiting(n int64) {
	w.Helper()
	w.until("callers wait", func() bool { return w.number("SELECT count(*) FROM :schema.ticket") == n })
}
