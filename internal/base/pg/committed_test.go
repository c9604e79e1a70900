package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// serializable returns a pool of one connection whose transactions are serializable unless they set a level.
func serializable(t *testing.T) *pg.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pg.Committed(pool)
}

// committed is implemented by Pool and Conn.
type committed interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Row(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func eachCommitted(t *testing.T, test func(t *testing.T, db committed)) {
	t.Run("pool", func(t *testing.T) {
		t.Parallel()
		test(t, serializable(t))
	})
	t.Run("connection", func(t *testing.T) {
		t.Parallel()
		conn, err := serializable(t).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
		test(t, pg.Conn{Conn: conn.Conn()})
	})
}

const level = "SELECT current_setting('transaction_isolation')"

func TestTransactionsAreReadCommittedWhateverTheDefaultIs(t *testing.T) {
	t.Parallel()
	eachCommitted(t, func(t *testing.T, db committed) {
		expect := func(what, got string, err error) {
			t.Helper()
			if err != nil || got != "read committed" {
				t.Errorf("%s: the level is %q (%v), want read committed", what, got, err)
			}
		}
		var got string
		err := db.Row(t.Context(), level).Scan(&got)
		expect("Row", got, err)

		b := &pgx.Batch{}
		b.Queue(level).QueryRow(func(row pgx.Row) error { return row.Scan(&got) })
		got = ""
		err = db.SendBatch(t.Context(), b).Close()
		expect("SendBatch", got, err)

		got = ""
		err = pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(),
				level).Scan(&got)
		})
		expect("Begin", got, err)

		for _, args := range [][]any{nil, {pg.Planned}} {
			_, err = db.Exec(t.Context(), "CREATE TEMP TABLE seen AS "+level+" AS it", args...)
			if err == nil {
				err = db.Row(t.Context(), "SELECT it FROM seen").Scan(&got)
			}
			expect("Exec", got, err)
			if _, err := db.Exec(t.Context(), "DROP TABLE seen"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A failure leaves no transaction open and costs no connection; a result without an error is committed.
func TestAStatementByItselfCommitsOrHasNoEffect(t *testing.T) {
	t.Parallel()
	eachCommitted(t, func(t *testing.T, db committed) {
		backend := func() (pid int) {
			t.Helper()
			if err := db.Row(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			return pid
		}
		before := backend()
		_, err := db.Exec(t.Context(), "CREATE TEMP TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
		if err != nil {
			t.Fatal(err)
		}
		tag, err := db.Exec(t.Context(), "INSERT INTO t VALUES ($1), ($2)", 1, 2)
		if err != nil || tag.RowsAffected() != 2 {
			t.Errorf("insert: %v, %v; want 2 rows", tag, err)
		}
		_, err = db.Exec(t.Context(), "INSERT INTO t VALUES (3), (1 / 0)")
		if pgerr.Code(err) != "22012" {
			t.Errorf("a statement that fails: %v", err)
		}
		b := &pgx.Batch{}
		b.Queue("INSERT INTO t VALUES (4)")
		b.Queue("SELECT 1 / 0")
		if err := db.SendBatch(t.Context(), b).Close(); pgerr.Code(err) != "22012" {
			t.Errorf("a batch that fails: %v", err)
		}
		var a int
		if err := db.Row(t.Context(), "INSERT INTO t VALUES (1) RETURNING a").Scan(&a); pgerr.Code(err) != "23505" {
			t.Errorf("the COMMIT fails, and Row says %v", err)
		}
		if err := db.Row(t.Context(), "WITH i AS (INSERT INTO t VALUES (5)) SELECT 1 WHERE false").Scan(&a); !errors.Is(
			err, pgx.ErrNoRows) {
			t.Errorf("no row: %v", err)
		}
		var rows []int
		if err := db.Row(t.Context(), "SELECT array_agg(a ORDER BY a) FROM t").Scan(&rows); err != nil ||
			len(rows) != 3 || rows[2] != 5 {
			t.Errorf("the table has %v (%v), want 1, 2 and 5", rows, err)
		}
		if after := backend(); after != before {
			t.Errorf("the failures cost the connection: backend %d became %d", before, after)
		}
	})
}

// Edda's own transactions may not be idle forever, unless a timeout is set.
func TestTransactionsMayBeIdleForAMinute(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"0": "1min", "5s": "5s"} {
		config, err := pgxpool.ParseConfig(pgdev.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = set
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		in, behind := "", ""
		err = pgx.BeginTxFunc(t.Context(), pg.Committed(pool), pg.ReadCommitted, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&in)
		})
		if err == nil {
			err = pool.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&behind)
		}
		if err != nil || in != want || behind != set {
			t.Errorf("where %s is set, a transaction has %s, and the session %s behind it, %v", set, in, behind, err)
		}
	}
}
