package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The tables of the subscriptions have no statistics in a new installation. The planner estimated thousands of rows,
// and Postgres compiled the statement for half a second before the first take of every process.
func TestRoutesAreReadWithoutCompilation(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	sql := w.sentByPeek("listener").Get("routes")
	var plan string
	if err := w.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+sql).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) WHERE $1::jsonb -> 0 ? 'JIT'`, plan); n != 0 {
		t.Errorf("the statement was compiled: %s", plan)
	}
}

// Names of schemas were searched for the marks of statements after they had been inserted.
func TestSchemaNamesMayHoldMarks(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	for _, mark := range []string{":queue", ":target", ":schema", "::schema"} {
		name := pgdev.Schema(t) + mark
		quoted := pgx.Identifier{name}.Sanitize()
		t.Cleanup(func() {
			if _, err := pool.Exec(context.WithoutCancel(t.Context()), "DROP SCHEMA IF EXISTS "+quoted+
				" CASCADE"); err != nil {
				t.Error(err)
			}
		})
		pgtest.Migrate(t, pool, name)
		b, err := bus.New(pool, bus.Options{Schema: name, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		handled := make(chan call, 1)
		e, err := bus.NewEndpoint(b, "calls", bus.EndpointOptions{},
			bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m call) error {
				handled <- m
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Send(t.Context(), call{N: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(20*time.Second))
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		select {
		case <-handled:
		case <-ctx.Done():
			t.Errorf("%s: nothing was handled", name)
		}
		cancel() // a batch that has begun commits
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var left int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+quoted+".queue_1").Scan(&left); err != nil ||
			left != 0 {
			t.Errorf("%s: %d messages are in the queue: %v", name, left, err)
		}
	}
}

// A program that only sends returns an error if the schema does not fit it, as a program with handlers does.
func TestSenderChecksTheSchema(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	for _, c := range []struct {
		change string
		want   error
	}{
		{`INSERT INTO edda.migration VALUES (999, 'less', true)`, migrations.ErrTooNew},
		{`DELETE FROM edda.migration WHERE version IN (2, 999)`, migrations.ErrNotMigrated},
	} {
		w.exec(c.change)
		b := w.newBus(bus.Options{Schema: w.schema})
		_, err := b.Send(t.Context(), told{Sum: 5}, saga.To("listener"))
		tx := w.begin()
		_, errTx := b.SendTx(t.Context(), tx, told{Sum: 5}, saga.To("listener"))
		_ = tx.Rollback(t.Context())
		if !errors.Is(err, c.want) || !errors.Is(errTx, c.want) {
			t.Errorf("%v, and in a transaction %v, want %v", err, errTx, c.want)
		}
	}
}
