package limit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// world is a migrated schema of a test's own.
type world struct {
	t      *testing.T
	pool   *pg.Pool // as the engine uses it
	schema pg.Schema
	store  *limit.Store
}

func open(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := limit.New(schema)
	return &world{t: t, pool: pg.Committed(pool), schema: schema, store: store}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), w.schema.Render(sql), args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) set(n int) {
	w.t.Helper()
	if err := w.store.Set(w.t.Context(), w.pool, "billing", n); err != nil {
		w.t.Fatal(err)
	}
}

// ask requests slots in a transaction of its own.
func (w *world) ask(holder string, want int) limit.Granted {
	w.t.Helper()
	tx := w.begin()
	g := w.askIn(tx, holder, want)
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) askIn(tx pgx.Tx, holder string, want int) limit.Granted {
	w.t.Helper()
	g, err := w.store.Grant(w.t.Context(), tx,
		limit.Request{Name: "billing", Holder: holder, Want: want, Lease: time.Hour, Patience: time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// gets requests slots and fails the test unless the expected number is granted.
func (w *world) gets(holder string, want, expected int) []limit.Slot {
	w.t.Helper()
	g := w.ask(holder, want)
	if !g.Limited || len(g.Slots) != expected || g.Waiting != (expected < want) {
		w.t.Fatalf("%s asked for %d and got %+v, want %d slots\n%s", holder, want, g, expected, w.story())
	}
	return g.Slots
}

func (w *world) release(slots ...limit.Slot) *limit.Released {
	w.t.Helper()
	b := &pgx.Batch{}
	r := w.store.QueueRelease(b, slots)
	if err := w.pool.SendBatch(w.t.Context(), b).Close(); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) begin() pgx.Tx {
	w.t.Helper()
	tx, err := w.pool.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.t.Context())) })
	return tx
}

func (w *world) permit(tx limit.Sender) bool {
	w.t.Helper()
	b := &pgx.Batch{}
	permit := w.store.QueuePermit(b, "billing")
	if err := tx.SendBatch(w.t.Context(), b).Close(); err != nil {
		w.t.Fatal(err)
	}
	return *permit
}

func (w *world) info() limit.Info {
	w.t.Helper()
	i, err := w.store.Get(w.t.Context(), w.pool, "billing")
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// expire ends the lease of all slots and tickets of holder.
func (w *world) expire(holder string) {
	w.t.Helper()
	w.exec("UPDATE :schema.slot SET expires = clock_timestamp() - interval '1 second' WHERE holder = $1", holder)
	w.exec("UPDATE :schema.ticket SET expires = clock_timestamp() - interval '1 second' WHERE holder = $1", holder)
}

// story returns the contents of the tables.
func (w *world) story() string {
	text := ""
	for _, sql := range []string{
		"SELECT l::text FROM :schema.concurrency_limit l ORDER BY name", "SELECT s::text FROM :schema.slot s ORDER " +
			"BY name, no",
		"SELECT t::text FROM :schema.ticket t ORDER BY name, number",
	} {
		rows, err := w.pool.Query(context.WithoutCancel(w.t.Context()), w.schema.Render(sql))
		if err != nil {
			return err.Error()
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		text += fmt.Sprintln(lines, err)
	}
	return text
}
