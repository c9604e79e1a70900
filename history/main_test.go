package history

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/internal/pgdev"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "statements.sql")
}
