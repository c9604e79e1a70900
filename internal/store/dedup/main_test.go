package dedup_test

import (
	"context"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func open(t *testing.T) (*pgxpool.Pool, *dedup.Store) {
	t.Helper()
	pool, schema := pgtest.Database(t)
	store := dedup.New(schema)
	return pool, store
}

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	for _, file := range []string{"statements.sql"} {
		pgtest.Statements(t, pool, schema, file)
	}
}

func begin(t *testing.T, db interface {
	BeginTx(ctx ctx, o pgx.TxOptions) (pgx.Tx, error)
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

// claim claims ids and returns the outcome of each.
func claim(t *testing.T, store *dedup.Store, tx pgx.Tx, given ...dedup.Given) []dedup.Outcome {
	t.Helper()
	outcomes, err := tryClaim(t.Context(), store, tx, given...)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

func tryClaim(ctx ctx, store *dedup.Store, tx pgx.Tx, given ...dedup.Given) ([]dedup.Outcome, error) {
	b, c := &pgx.Batch{}, store.NewClaim(given)
	c.Queue(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	outcomes := make([]dedup.Outcome, len(given))
	for i := range given {
		outcomes[i] = c.Outcome(i)
	}
	return outcomes, nil
}

func given(n byte, body string) dedup.Given {
	return dedup.Given{ID: saga.ID{n}, Sum: dedup.Sum("order.place", "", []byte(body))}
}
