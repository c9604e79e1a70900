package deadletter_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func open(t *testing.T) (*pgxpool.Pool, *deadletter.Store) {
	t.Helper()
	pool, schema := pgtest.OddDatabase(t)
	store := deadletter.New(schema)
	return pool, store
}

func write(t *testing.T, pool *pgxpool.Pool, store *deadletter.Store, letters ...recoverability.Letter) {
	t.Helper()
	b := &pgx.Batch{}
	store.QueueLetters(b, letters)
	if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatalf("write %d dead letters: %v", len(letters), err)
	}
}

func list(
	t *testing.T, pool *pgxpool.Pool, store *deadletter.Store, f recoverability.LetterFilter,
) []recoverability.Letter {
	t.Helper()
	letters, err := store.List(t.Context(), pool, f)
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

func discarded(
	t *testing.T, pool *pgxpool.Pool, store *deadletter.Store, f recoverability.LetterFilter,
) []recoverability.Discarded {
	t.Helper()
	rows, err := store.ListDiscarded(t.Context(), pool, f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
