package pgtest

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// AwaitBlocked returns when the session of conn waits for a lock that another session holds. It asks the server
// again and again, and fails the test if the session does not come to wait.
func AwaitBlocked(t testing.TB, pool *pgxpool.Pool, conn *pgx.Conn) {
	t.Helper()
	pid, ctx := conn.PgConn().PID(), pgdev.Deadline(t)
	for blocked := false; !blocked; {
		err := pool.QueryRow(ctx, "SELECT cardinality(pg_blocking_pids($1)) > 0", int32(pid)).Scan(&blocked)
		if err != nil {
			t.Fatalf("wait until session %d is blocked: %v", pid, err)
		}
	}
}
