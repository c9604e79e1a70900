package pg

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed hear.sql
var hearStatements string

var hearing = sync.OnceValue(func() Statements { return Load(hearStatements, Schema{}) })

// quiet is how long a listener accepts silence, and how long it then waits for an answer.
const quiet = 5 * time.Second

// Hear waits for a notification on a connection that listens, or returns nil if no notification came for five
// seconds. If the server's machine is lost, as in a failover, the connection delivers neither notifications nor
// errors. So Hear then sends a query, and returns an error if no answer comes.
func Hear(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	n, err := hearFor(ctx, conn, quiet)
	if n != nil || ctx.Err() != nil || conn.IsClosed() {
		return n, err
	}
	if err := ask(ctx, conn, hearing().Get("still_there")); err != nil {
		return nil, fmt.Errorf("check the connection to the server: %w", err)
	}
	return nil, nil
}

// hearFor returns nil, and an error, when its time is over.
func hearFor(ctx context.Context, conn *pgx.Conn, most time.Duration) (*pgconn.Notification, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return conn.WaitForNotification(ctx)
}

func ask(ctx context.Context, conn *pgx.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	_, err := conn.Exec(ctx, sql)
	return err
}
