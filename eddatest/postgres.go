package eddatest

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// most connections of a pool
const mostConns = 10

// Pool returns a pool of ten connections to a new database, in which the schema edda is migrated. The pool is closed
// and the database is dropped when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := open(t, pgdev.Database(t))
	if err := migrate.Up(t.Context(), pool, migrate.Options{}); err != nil {
		t.Fatalf("eddatest: %v", err)
	}
	return pool
}

// DSN returns the connection string of a new database with nothing in it, for programs that make their tables. It is
// dropped when the test ends.
func DSN(t testing.TB) string {
	t.Helper()
	return pgdev.Database(t)
}

// Main runs the tests and ends the private Postgres, if there is one. Without it that ends a moment after the process.
//
//	func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }
func Main(m *testing.M) int { return pgdev.Main(m) }

func open(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("eddatest: read the connection string: %v", err)
	}
	config.MaxConns = mostConns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("eddatest: open a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}
