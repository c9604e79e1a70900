package pgdev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shared is the one server of a test binary, started by the first test that needs it.
var shared struct {
	sync.Mutex // guards the fields below
	server     *Server
	bouncer    *Bouncer // nil unless BouncerVariable asks for it
	err        error
}

// Main runs the tests and stops the shared server. Without it the watcher ends the server a moment after the process
// has ended.
//
//	func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }
//
// When Main returns, pgdev holds no goroutine, so goleak.Find may follow.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return code
	}
	if err := errors.Join(stopBouncer(), shared.server.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, "pgdev:", err)
		return max(code, 1)
	}
	return code
}

// DSN returns the connection string of the test binary's shared server. If no server can be started, the test fails:
// it never skips.
func DSN(t testing.TB) string {
	t.Helper()
	dsn, err := SharedDSN(t.Context())
	if err != nil {
		t.Fatalf("pgdev: %v", err)
	}
	return dsn
}

// SharedDSN is DSN for an Example, which has no testing.TB.
func SharedDSN(ctx context.Context) (string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		// The server outlives the test that happens to be first.
		shared.server, shared.err = Start(context.WithoutCancel(ctx), Options{})
	}
	if shared.err != nil {
		return "", shared.err
	}
	return shared.server.DSN(), nil
}

// Pool returns a pool of at most ten connections to the shared server. It closes when the test ends, and waits then
// for connections that are still in use.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(DSN(t))
	if err != nil {
		t.Fatalf("pgdev: read the connection string: %v", err)
	}
	config.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgdev: open a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Connect opens a connection to the shared server. It closes when the test ends.
func Connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), DSN(t))
	if err != nil {
		t.Fatalf("pgdev: connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// Schema returns a schema name that no other test has, here or in a different process on the same server. The schema
// is not created; whatever has the name when the test ends is dropped.
func Schema(t testing.TB) string {
	t.Helper()
	dsn := DSN(t)
	schema := schemaName(t.Name())
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := dropSchema(ctx, dsn, schema); err != nil {
			t.Errorf("pgdev: %v", err)
		}
	})
	return schema
}

// schemaName keeps enough of the test's name to recognise it in psql, and stays well below the 63 bytes of an
// identifier.
func schemaName(test string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	return "t_" + plain[:min(len(plain), 30)] + "_" + strings.ToLower(rand.Text()[:10])
}

// dropSchema waits for locks for a limited time: a transaction that the test left open must fail the test, not hang
// it.
const dropTries = 5

func isDeadlock(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "40P01"
}

func dropSchema(ctx context.Context, dsn, schema string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("drop schema %s: %w", schema, err)
	}
	defer conn.Close(ctx)
	// Work that a test started and did not wait for, such as a read of the routes, may still read some of the tables.
	// It locks them once in an order other than that of the drop: if Postgres ends the drop because of that, the drop
	// is tried again.
	for range dropTries {
		_, err = conn.Exec(ctx, "SET lock_timeout = '15s'; SET client_min_messages = warning; DROP SCHEMA IF EXISTS "+
			pgx.Identifier{schema}.Sanitize()+" CASCADE")
		if !isDeadlock(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("drop schema %s (did the test leave a transaction open?): %w", schema, err)
	}
	return nil
}
