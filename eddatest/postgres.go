package eddatest

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maximum connections of a pool
const mostConns = 10

// Pool returns a pool of ten connections to a new database with the schema edda migrated. The pool is closed and the
// database dropped when the test ends. It fails t if there is no Postgres.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := open(t, pgdev.Database(t))
	if err := migrations.Up(t.Context(), pool, migrations.Options{}); err != nil {
		t.Fatalf("eddatest: %v", err)
	}
	return pool
}

// DSN returns the connection string of a new, empty database, for programs that make their own tables. It is dropped
// when the test ends. DSN fails t if there is no Postgres.
func DSN(t testing.TB) string {
	t.Helper()
	return pgdev.Database(t)
}

// Main runs the tests and ends the private Postgres, if there is one. Without Main it ends shortly after the process.
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
