package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// AwaitBlocked returns when the session of conn waits for a lock that another session holds. It asks the server
// again and again; the test's own deadline ends it.
func AwaitBlocked(t testing.TB, pool *pgxpool.Pool, conn *pgx.Conn) {
	t.Helper()
	pid := conn.PgConn().PID()
	for blocked := false; !blocked; {
		err := pool.QueryRow(t.Context(), "SELECT cardinality(pg_blocking_pids($1)) > 0", int32(pid)).Scan(&blocked)
		if err != nil {
			t.Fatalf("wait until session %d is blocked: %v", pid, err)
		}
	}
}
