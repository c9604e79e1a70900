package bus_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	if isWorker() || isReceiver() {
		return
	}
	if spec := os.Getenv(serverVariable); spec != "" { // a test of partitions has started a server
		if err := serve(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Most of a test is waiting for Postgres, so more tests run at once than there are processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// world is one migrated schema with a bus, and the events of everything that ran in it.
type world struct {
	t      *testing.T
	dsn    string
	owner  *pgxpool.Pool // for preparation and checks; the tested code uses pool
	pool   *pgxpool.Pool
	role   string // of pool, see pgtest.RoleVariable; "" is the owner
	schema string
	bus    *bus.Bus

	mu     sync.Mutex
	events []event.Event
}

func newWorld(t *testing.T, o bus.Options) *world {
	t.Helper()
	return newWorldOf(t, o, pgtest.RoleUnderTest)
}

// newWorldOf is newWorld for an engine that runs as the role that makeRole makes; "" is the owner of everything.
func newWorldOf(t *testing.T, o bus.Options, makeRole func(t testing.TB, owner *pgxpool.Pool,
	schema string) string) *world {
	t.Helper()
	return newWorldIn(t, pgdev.DSN(t), o, makeRole)
}

// newWorldIn is newWorldOf in a database of the shared server.
func newWorldIn(t *testing.T, dsn string, o bus.Options,
	makeRole func(t testing.TB, owner *pgxpool.Pool, schema string) string) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, dsn: dsn, schema: pgdev.Schema(t)}
	w.owner = w.openPool(dsn)
	pgtest.Migrate(t, w.owner, w.schema)
	w.pool, w.role = w.owner, makeRole(t, w.owner, w.schema)
	switch {
	case w.role != "": // PgBouncer refuses a role
		w.pool = w.openPool(dsn)
	case pgdev.Pooled():
		w.pool = w.openPool(pgdev.PooledDSN(t, dsn))
	}
	o.Schema, o.AutoInstall = w.schema, true
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Events = func(e event.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	w.bus = w.newBus(o)
	return w
}

// operator returns an Operator with the pool of the engine.
func (w *world) operator() *operate.Operator { return w.operatorOf(w.pool) }

func (w *world) operatorOf(pool *pgxpool.Pool) *operate.Operator {
	w.t.Helper()
	o, err := operate.New(pool, operate.Options{Schema: w.schema})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) newBus(o bus.Options) *bus.Bus {
	w.t.Helper()
	o.Wakeup = pgtest.IfPooled(bus.PollOnly, o.Wakeup)
	b, err := bus.New(w.pool, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// openPool returns a pool of the role that the engine has in this test.
func (w *world) openPool(dsn string) *pgxpool.Pool {
	w.t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	config.MaxConns = 10
	pgtest.Become(config, w.role)
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { pgtest.Close(w.t, pool) })
	return pool
}

// makeQueue creates a queue as the owner, because the engine's role may not.
func (w *world) makeQueue(name string) {
	w.t.Helper()
	if w.role == "" {
		return
	}
	b, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err == nil {
		err = b.InstallQueue(w.t.Context(), name)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) endpoint(name string, o bus.EndpointOptions, parts ...bus.Part) *bus.Endpoint {
	w.t.Helper()
	e, err := bus.NewEndpoint(w.bus, name, o, parts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// run installs the endpoint and runs it until the test or stop ends it.
func (w *world) run(e *bus.Endpoint) (stop func()) {
	w.t.Helper()
	w.makeQueue(e.Name())
	if err := e.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return pgtest.Run(w.t, "endpoint "+e.Name(), e.Run)
}

// start makes and runs an endpoint.
func (w *world) start(name string, o bus.EndpointOptions, parts ...bus.Part) (stop func()) {
	w.t.Helper()
	return w.run(w.endpoint(name, o, parts...))
}

func (w *world) send(m saga.Message, o ...saga.SendOption) saga.Sent {
	w.t.Helper()
	sent, err := w.bus.Send(w.t.Context(), m, o...)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	pgtest.Exec(w.t, w.owner, w.sql(sql), args...)
}

// createDatabase makes a second database on the server of the tests.
func (w *world) createDatabase(name string) {
	w.t.Helper()
	// outside of a transaction
	if _, err := w.owner.Exec(w.t.Context(), `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()); err != nil {
		w.t.Fatal(err)
	}
}

// sql replaces the schema edda with the schema of w.
func (w *world) sql(text string) string {
	return replaceAll(text, "edda.", pgx.Identifier{w.schema}.Sanitize()+".")
}

func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.owner.QueryRow(w.t.Context(), w.sql(sql), args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (w *world) text(sql string, args ...any) string {
	w.t.Helper()
	var s string
	err := w.owner.QueryRow(w.t.Context(), w.sql(sql), args...).Scan(&s)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// until waits for a condition of the database, checking it every few milliseconds.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	w.untilWithin(pgdev.Patience(20*time.Second), what, done)
}

func (w *world) untilWithin(most time.Duration, what string, done func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	look := time.NewTicker(3 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-deadline.C:
			w.t.Fatalf("waited in vain until %s\nevents: %s", what, w.story())
		case <-look.C:
		}
	}
}

func (w *world) queue(endpoint string) string {
	w.t.Helper()
	return fmt.Sprintf("edda.queue_%d", w.count(`SELECT id FROM edda.queue WHERE endpoint = $1`, endpoint))
}

func (w *world) untilEmpty(endpoint string) {
	w.t.Helper()
	table := w.queue(endpoint)
	w.until("queue "+endpoint+" is empty", func() bool { return w.count(`SELECT count(*) FROM `+table) == 0 })
}

func (w *world) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := ""
	for _, e := range w.events[max(0, len(w.events)-40):] {
		text += fmt.Sprintf("\n  %T%+v", e, e)
	}
	return text
}

// untilTold waits until n events of a type were emitted, which happens after the commit that they report.
func untilTold[E event.Event](w *world, n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d of %T are told of", n, *new(E)), func() bool { return len(eventsOf[E](w)) >= n })
}

func eventsOf[E event.Event](w *world) (found []E) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}
