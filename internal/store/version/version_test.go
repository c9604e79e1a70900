package version_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "check.sql")
}
