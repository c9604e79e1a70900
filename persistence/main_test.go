package persistence_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestPessimistic(t *testing.T) {
	t.Parallel()
	conform(t, func(t *testing.T) fixture { return postgresFixture(t, true) })
}

func TestOptimistic(t *testing.T) {
	t.Parallel()
	conform(t, func(t *testing.T) fixture { return postgresFixture(t, false) })
}

func TestMemory(t *testing.T) {
	t.Parallel()
	conform(t, memoryFixture)
}

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "statements.sql")
	pgtest.Statements(t, pool, schema, "records.sql")
	pgtest.Statements(t, pool, schema, "items.sql")
}

// database is a migrated schema with its store, for tests that write SQL of their own.
type database struct {
	*pgxpool.Pool
	store  *persistence.Store
	render func(sql string) string
}

func open(t *testing.T) database {
	t.Helper()
	pool, schema := pgtest.OddDatabase(t)
	store := persistence.New(schema)
	return database{pool, store, schema.Render}
}
