package watermill_test

import (
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil { // most of a test is waiting
		panic(err)
	}
	pgtest.Main(m)
}

// world is a migrated schema with a bus.
type world struct {
	*testing.T
	pool   *pgxpool.Pool
	schema string
	bus    *bus.Bus
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return worldOn(t, pgdev.Pool(t), pgdev.Schema(t))
}

func worldOn(t *testing.T, pool *pgxpool.Pool, schema string) *world {
	t.Helper()
	pgtest.Migrate(t, pool, schema)
	b, err := bus.New(pool, bus.Options{Schema: schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, pool: pool, schema: schema, bus: b}
}

// left returns how many messages are in a queue.
func (w *world) left(endpoint string) (n int) {
	w.Helper()
	table := ""
	name := pgx.Identifier{w.schema}.Sanitize()
	err := w.pool.QueryRow(w.Context(), `SELECT 'queue_' || id FROM `+name+`.queue WHERE endpoint = $1`,
		endpoint).Scan(&table)
	if err == nil {
		err = w.pool.QueryRow(w.Context(), `SELECT count(*) FROM `+name+`.`+table).Scan(&n)
	}
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// until waits for a condition, checking it every few milliseconds.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	deadline := time.NewTimer(pgdev.Patience(20 * time.Second))
	defer deadline.Stop()
	look := time.NewTicker(3 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-deadline.C:
			w.Fatalf("waited in vain until %s", what)
		case <-look.C:
		}
	}
}

// run runs an endpoint until the test ends.
func (w *world) run(name string, o bus.EndpointOptions, parts ...bus.Part) {
	w.Helper()
	e, err := bus.NewEndpoint(w.bus, name, o, parts...)
	if err == nil {
		err = e.Install(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	pgtest.Run(w.T, "endpoint "+name, e.Run)
}
