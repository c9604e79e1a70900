package operate_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "operate.sql")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := operate.New(nil, operate.Options{}); err == nil {
		t.Error("a pool that is nil was taken")
	}
	if _, err := operate.New(pgdev.Pool(t), operate.Options{Schema: "pg_edda"}); err == nil {
		t.Error("a schema of Postgres' own was taken")
	}
}
