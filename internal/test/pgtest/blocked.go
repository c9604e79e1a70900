package pgtest

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Backend returns the server's process of a transaction. Behind a PgBouncer it is not the process of
// the connection.
func Backend(t testing.TB, tx pgx.Tx) (pid int32) {
	t.Helper()
	if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// AwaitBlocked returns when the session of conn waits for a lock that a different session holds. It polls the server,
// and fails the test if the session does not come to wait.
func AwaitBlocked(t testing.TB, pool *pgxpool.Pool, conn *pgx.Conn) {
	t.Helper()
	pid, ctx := conn.PgConn().PID(), pgdev.Deadline(t)
	name := conn.Config().RuntimeParams["application_name"]
	for blocked := false; !blocked; {
		err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE (pid = $1 OR application_name = nullif($2, '')) AND cardinality(pg_blocking_pids(pid)) > 0)`,
			int32(pid), name).Scan(&blocked)
		if err != nil {
			t.Fatalf("wait until session %d is blocked: %v", pid, err)
		}
	}
}
