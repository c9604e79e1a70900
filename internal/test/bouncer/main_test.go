//go:build bouncer

package bouncer_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	procs.Become(workerVariable, "worker", work)
	os.Exit(pgdev.Main(m))
}

// ignoring are settings of PgBouncer that let the settings of a bus that listens pass.
var ignoring = map[string]string{"ignore_startup_parameters": "idle_in_transaction_session_timeout,tcp_user_timeout," +
	"tcp_keepalives_idle,tcp_keepalives_interval,tcp_keepalives_count"}

// startBouncer puts a PgBouncer of the test's own before the server of dsn.
func startBouncer(t testing.TB, dsn string, settings map[string]string) *pgdev.Bouncer {
	t.Helper()
	b, err := pgdev.StartBouncer(t.Context(), dsn, pgdev.BouncerOptions{Settings: settings})
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

func openPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn+"&pool_max_conns=8")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func newBus(t testing.TB, pool *pgxpool.Pool, schema string, wakeup bus.Wakeup) *bus.Bus {
	t.Helper()
	b, err := bus.New(pool, bus.Options{Schema: schema, AutoInstall: true, Wakeup: wakeup,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// world is a schema that was migrated through a PgBouncer of the test's own, and that the test reads directly.
type world struct {
	*testing.T
	server  *pgdev.Server // of the test's own, too
	direct  *pgxpool.Pool
	bouncer *pgdev.Bouncer
	schema  string
	pool    *pgxpool.Pool // through PgBouncer
}

func newWorld(t *testing.T, sessions int) *world {
	t.Helper()
	t.Parallel()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w := &world{T: t, server: server, direct: openPool(t, server.DSN()), schema: "edda"}
	w.bouncer = startBouncer(t, server.DSN(),
		map[string]string{"default_pool_size": fmt.Sprint(sessions), "server_login_retry": "1"})
	w.pool = openPool(t, w.dsn())
	w.must(migrations.Up(t.Context(), w.pool, migrations.Options{Schema: w.schema}))
	pgtest.Exec(t, w.direct, "CREATE TABLE edda.effect (key text, n int)")
	return w
}

func (w *world) dsn() string { return w.bouncer.DSN() + "&default_query_exec_mode=cache_describe" }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) bus() *bus.Bus { return newBus(w, w.pool, w.schema, bus.PollOnly) }

// await waits until the query returns want. While Postgres is away it asks again.
func (w *world) await(want, sql string, args ...any) {
	w.Helper()
	var got string
	var err error
	for deadline := time.Now().Add(pgdev.Patience(20 * time.Second)); time.Now().Before(deadline); {
		if err = w.direct.QueryRow(w.Context(), sql, args...).Scan(&got); err == nil && got == want {
			return
		}
	}
	var dead string
	_ = w.direct.QueryRow(w.Context(), `SELECT coalesce(string_agg(endpoint || ' ' || kind || ': ' ||
		coalesce(error, ''), E'\n'), 'none') FROM edda.dead_letter`).Scan(&dead)
	w.Fatalf("waited in vain for %s, got %s, %v; dead letters: %s\n%s", want, got, err, dead, sql)
}

// wantClean fails if a client has left something in one of the sessions.
func (w *world) wantClean(sessions int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), pgdev.Patience(20*time.Second))
	defer cancel()
	left, err := w.bouncer.Left(ctx, sessions)
	w.must(err)
	if len(left) > 0 {
		w.Errorf("left in a session: %s", strings.Join(left, "; "))
	}
}

type task struct {
	Key string
	N   int
}

func (task) Kind() string { return "task.do" }

// effect is what handlers of these tests leave. No constraint hides that one was done twice.
func effect(ctx context.Context, tx pgx.Tx, key string, n int) error {
	_, err := tx.Exec(ctx, "INSERT INTO edda.effect (key, n) VALUES ($1, $2)", key, n)
	return err
}

func do(ctx *bus.Context, tx pgx.Tx, m task) error { return effect(ctx, tx, m.Key, m.N) }
