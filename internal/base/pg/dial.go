package pg

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed dial.sql
var dialStatements string

var dialling = sync.OnceValue(func() Statements { return Load(dialStatements, Schema{}) })

// Dial opens a connection like those of a pool, outside of the pool, for callers that must not wait for a free one.
// Such a connection may hold a lock for as long as it lives, so the server checks often whether the client is still
// alive. Close it with HangUp.
func Dial(ctx context.Context, config *pgxpool.Config) (*pgx.Conn, error) {
	conn, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	// A server that does not support this is accepted. With the simple protocol no prepared statement stays in a
	// session that is not ours.
	_, _ = conn.Exec(ctx, dialling().Get("notice_vanished"), pgx.QueryExecModeSimpleProtocol,
		int64(conn.PgConn().PID()))
	if config.AfterConnect != nil {
		if err := config.AfterConnect(ctx, conn); err != nil {
			HangUp(ctx, conn)
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
	return conn, nil
}

// connect shares attempts with the pools while the database is away, see reach.
func connect(ctx context.Context, config *pgxpool.Config) (*pgx.Conn, error) {
	r := reachOf(config)
	var conn *pgx.Conn
	if err := r.await(ctx, func(ctx context.Context) (err error) {
		conn, err = connectNow(ctx, config)
		return err
	}); err != nil || conn != nil {
		return conn, err
	}
	conn, err := connectNow(ctx, config)
	return conn, r.note(err)
}

func connectNow(ctx context.Context, config *pgxpool.Config) (*pgx.Conn, error) {
	to := config.ConnConfig.Copy()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, to); err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
	return pgx.ConnectConfig(ctx, to)
}

// HangUp closes a connection, whether or not the server answers. An open transaction is rolled back.
func HangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
