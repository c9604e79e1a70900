package outbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	for _, file := range []string{"inbox.sql", "kept.sql", "relay.sql"} {
		pgtest.Statements(t, pool, schema, file)
	}
}

func begin(t *testing.T, db interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}) pgx.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }) // of a test that failed
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
