//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const sessions = 4 // that PgBouncer has for all of these tests together

func TestMain(m *testing.M) {
	if isWorker() {
		return
	}
	if err := flag.Set("test.parallel", "3"); err != nil { // there are four sessions
		panic(err)
	}
	code := pgdev.Main(m)
	if shared.bouncer != nil {
		if err := shared.bouncer.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// shared is the PgBouncer of all tests but those that make mistakes on purpose.
var shared struct {
	sync.Mutex // guards the fields below, and the looking at sessions
	bouncer    *pgdev.Bouncer
	err        error
}

func pgbouncer(t testing.TB) *pgdev.Bouncer {
	t.Helper()
	dsn := pgdev.DSN(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.bouncer == nil && shared.err == nil {
		shared.bouncer, shared.err = pgdev.StartBouncer(context.WithoutCancel(t.Context()), dsn,
			pgdev.BouncerOptions{Binary: os.Getenv("PGBOUNCER")})
		if shared.err == nil {
			spoil(t, shared.bouncer)
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.bouncer
}

// ownBouncer is a PgBouncer of the test's own.
func ownBouncer(t testing.TB, settings map[string]string) *pgdev.Bouncer {
	t.Helper()
	return bouncerBefore(t, pgdev.DSN(t), settings)
}

func bouncerBefore(t testing.TB, dsn string, settings map[string]string) *pgdev.Bouncer {
	t.Helper()
	b, err := pgdev.StartBouncer(t.Context(), dsn,
		pgdev.BouncerOptions{Binary: os.Getenv("PGBOUNCER"), Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// spoiled are settings that another program has left in every session.
var spoiled = map[string]string{
	"search_path": "pg_temp", "extra_float_digits": "-3", "IntervalStyle": "sql_standard", "xmloption": "document",
	"enable_indexscan": "off", "jit_optimize_above_cost": "0",
}

func spoil(t testing.TB, b *pgdev.Bouncer) {
	t.Helper()
	inEachSession(t, b.DSN(), func(ctx context.Context, tx pgx.Tx) {
		for name, value := range spoiled {
			if _, err := tx.Exec(ctx, "SELECT set_config($1, $2, false)", pgx.QueryExecModeSimpleProtocol, name,
				value); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// inEachSession calls do in a transaction of each session that PgBouncer has, all of them open at once. Who works
// through PgBouncer meanwhile may hold the last session until there is another, as a subscriber does that waits for its
// ack: then all are given back, and it begins anew, for 40 seconds.
func inEachSession(t testing.TB, dsn string, do func(ctx context.Context, tx pgx.Tx)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 40*time.Second)
	defer cancel()
	for !tryEachSession(ctx, t, dsn, do) {
		if ctx.Err() != nil {
			t.Fatalf("there was no second in which all %d sessions were free", sessions)
		}
	}
}

// tryEachSession reports whether every session was free within a second. If not, do has been called in some of them.
func tryEachSession(ctx context.Context, t testing.TB, dsn string, do func(ctx context.Context, tx pgx.Tx)) bool {
	t.Helper()
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	seen := map[uint32]bool{}
	for range sessions {
		conn, err := pgx.Connect(ctx, dsn+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		tx, err := conn.Begin(soon) // PgBouncer lets it wait for a session
		if soon.Err() != nil {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := tx.Commit(ctx); err != nil {
				t.Error(err)
			}
		}()
		var pid uint32
		if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		seen[pid] = true
		do(ctx, tx)
	}
	if len(seen) != sessions {
		t.Fatalf("%d sessions, want %d", len(seen), sessions)
	}
	return true
}

// leftBehind are the things that a session should not have at the begin of a transaction. PgBouncer itself carries over
// five settings from client to client, and those of a transaction are its own.
const leftBehind = `
SELECT 'setting ' || name || ' = ' || setting FROM pg_settings WHERE source = 'session'
AND name NOT LIKE 'transaction\_%'
   AND name <> ALL (ARRAY['application_name', 'client_encoding', 'DateStyle', 'TimeZone',
'standard_conforming_strings'] || string_to_array($1, ','))
UNION ALL SELECT 'statement ' || name || ': ' || left(statement, 60) FROM pg_prepared_statements
UNION ALL SELECT 'cursor ' || name FROM pg_cursors
UNION ALL SELECT 'channel ' || c FROM pg_listening_channels() c
UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()`

// wantClean looks into each session. Tests do that one after another: two that held half of the sessions would wait for
// ever.
func wantClean(t testing.TB, b *pgdev.Bouncer) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	var names []string
	for name := range spoiled {
		names = append(names, name)
	}
	found := map[string]bool{}
	inEachSession(t, b.DSN(), func(ctx context.Context, tx pgx.Tx) {
		rows, err := tx.Query(ctx, leftBehind, strings.Join(names, ","))
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range all {
			found[what] = true
		}
	})
	for what := range found {
		if !serverKeeps(b, what) {
			t.Errorf("left in a session: %s", what)
		}
	}
}

// serverKeeps tells what PgBouncer keeps in a session itself: since 1.21 it prepares there what clients have prepared.
func serverKeeps(b *pgdev.Bouncer, what string) bool {
	return knowsStatements(b) && strings.HasPrefix(what, "statement PGBOUNCER_")
}

// knowsStatements reports whether named prepared statements work through b.
func knowsStatements(b *pgdev.Bouncer) bool {
	var major, minor int
	_, err := fmt.Sscanf(b.Version(), "%d.%d", &major, &minor)
	return err == nil && (major > 1 || minor >= 21)
}

// world is a schema that is reached through PgBouncer, and by the test directly.
type world struct {
	t       *testing.T
	direct  *pgxpool.Pool // the test looks on
	bouncer *pgdev.Bouncer
	schema  string
	mode    pgx.QueryExecMode
	pool    *pgxpool.Pool
	log     *journal
	bus     *bus.Bus
}

// newWorld migrates through PgBouncer too.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, pgx.QueryExecModeCacheDescribe)
}

func newWorldIn(t *testing.T, mode pgx.QueryExecMode) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, direct: pgdev.Pool(t), schema: pgdev.Schema(t), bouncer: pgbouncer(t), mode: mode,
		log: &journal{}}
	t.Cleanup(func() { // after all that runs has ended
		wantClean(t, w.bouncer)
		// a machine that stood still for 5 s between two statements: it says nothing of PgBouncer
		w.log.explain("SQLSTATE 25P03")
		w.log.wantNone(t)
	})
	w.migrate()
	return w
}

func (w *world) migrate() {
	w.t.Helper()
	w.pool = openPool(w.t, w.dsn())
	if err := migrate.Up(w.t.Context(), w.pool, migrate.Options{Schema: w.schema}); err != nil {
		w.t.Fatal(err)
	}
	w.exec("CREATE TABLE :schema.effect (key text, n int, at timestamptz DEFAULT clock_timestamp())")
	w.bus = w.newBus(bus.Options{})
}

func (w *world) dsn() string {
	return w.bouncer.DSN() + "&default_query_exec_mode=" + strings.ReplaceAll(w.mode.String(), " ", "_")
}

func openPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (w *world) newBus(o bus.Options) *bus.Bus {
	w.t.Helper()
	o.Schema, o.AutoInstall, o.Wakeup, o.Logger = w.schema, true, bus.PollOnly, slog.New(w.log)
	b, err := bus.New(w.pool, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

const (
	quickly   = 50 * time.Millisecond // of the polls
	patiently = 10 * time.Second      // of the leases of tests in which nobody may lose one
)

func (w *world) start(name string, o bus.EndpointOptions, parts ...bus.Part) (stop func()) {
	w.t.Helper()
	return w.startOn(w.bus, name, o, parts...)
}

func (w *world) startOn(b *bus.Bus, name string, o bus.EndpointOptions, parts ...bus.Part) (stop func()) {
	w.t.Helper()
	o.Poll = quickly
	e, err := bus.NewEndpoint(b, name, o, parts...)
	if err == nil {
		err = e.Install(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(e.Run)
}

// run runs do until the test or stop ends it.
func (w *world) run(do func(context.Context) error) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) send(m saga.Message, o ...saga.SendOption) saga.Sent {
	w.t.Helper()
	sent, err := w.bus.Send(w.t.Context(), m, o...)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

// sql puts the schema in its place.
func (w *world) sql(text string) string {
	return strings.ReplaceAll(text, ":schema", pgx.Identifier{w.schema}.Sanitize())
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.direct.Exec(w.t.Context(), w.sql(sql), args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) text(sql string, args ...any) (text string) {
	w.t.Helper()
	err := w.direct.QueryRow(w.t.Context(), w.sql(sql), args...).Scan(&text)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// effect is what handlers of these tests leave, with no constraint that would hide that one was done twice.
func (w *world) effect(ctx context.Context, tx pgx.Tx, key string, n int) error {
	_, err := tx.Exec(ctx, w.sql("INSERT INTO :schema.effect (key, n) VALUES ($1, $2)"), key, n)
	return err
}

// await looks until sql says want.
func (w *world) await(what, want, sql string, args ...any) {
	w.t.Helper()
	deadline, got := time.Now().Add(pgdev.Patience(20*time.Second)), ""
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for range look.C {
		if got = w.text(sql, args...); got == want {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain for %s: %s, want %s\n%s", what, got, want, w.story())
		}
	}
}

// awaitEffects waits for n effects of n pairs of key and number, each of them once, and that nothing is left to do.
func (w *world) awaitEffects(n int) {
	w.t.Helper()
	w.await("the effects", fmt.Sprintf("%d of %[1]d", n), "SELECT count(DISTINCT (key, n)) || ' of ' || count(*) "+
		"FROM :schema.effect")
	w.awaitRest()
}

// awaitRest waits until no queue has anything that is due.
func (w *world) awaitRest() {
	w.t.Helper()
	w.await("queues without messages", "", `
SELECT coalesce(string_agg(q.endpoint || ' ' || x.n, ', '), '') FROM :schema.queue q, LATERAL (
    SELECT (xpath('//n/text()', query_to_xml(format('SELECT count(*) n FROM %I.queue_%s', $1::text, q.id), true, true,
'')))[1]::text::int AS n) x
WHERE x.n > 0`, w.schema)
}

func (w *world) story() string {
	return fmt.Sprintf("effects: %s\ndead: %s\nlog: %s",
		w.text("SELECT count(*)::text FROM :schema.effect"),
		w.text("SELECT coalesce(string_agg(endpoint || ' ' || kind || ': ' || coalesce(error, ''), E'\\n'), '') "+
			"FROM :schema.dead_letter"), w.log)
}

// journal keeps what was logged as a warning or worse.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (*journal) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler         { return j }
func (j *journal) WithGroup(string) slog.Handler              { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	return nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// explain takes the lines out that contain one of texts: they are expected.
func (j *journal) explain(texts ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var rest []string
	for _, line := range j.lines {
		expected := false
		for _, text := range texts {
			expected = expected || strings.Contains(line, text)
		}
		if !expected {
			rest = append(rest, line)
		}
	}
	j.lines = rest
}

func (j *journal) wantNone(t testing.TB) {
	t.Helper()
	if all := j.String(); all != "" {
		t.Errorf("the log has warnings that nothing explains:\n%s", all)
	}
}
