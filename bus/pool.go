package bus

import (
	"context"
	"errors"
	"fmt"

	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPooler: the bus uses LISTEN, but a pooler between the program and Postgres gives each transaction another session.
// Set Options.Wakeup to PollOnly.
var ErrPooler = errors.New("a pooler in transaction mode is in front of Postgres, where LISTEN and session locks do " +
	"not work: set bus.Options.Wakeup to bus.PollOnly")

var errDescribeExec = errors.New("a pooler in transaction mode is in front of Postgres, where " +
	"default_query_exec_mode=describe_exec may describe and execute a query in different sessions: use " +
	"cache_describe")

// checkPooler is called if there is a pooler between the process and Postgres. A pooler that gives each client its own
// session does no harm. Behind any other pooler, LISTEN succeeds but receives nothing, and the lock that proves that
// this process is alive would stay with a session of the pooler: other processes would miss a crash, or detect a crash
// that did not happen.
func checkPooler(ctx context.Context, b *Bus, config *pgxpool.Config) error {
	mode := config.ConnConfig.DefaultQueryExecMode
	if b.wakeup == PollOnly && mode == pgx.QueryExecModeCacheDescribe {
		return nil // it needs nothing that a pooler could break
	}
	shared, err := pg.SharesSessions(ctx, config)
	if err != nil {
		return fmt.Errorf("detect a pooler in front of Postgres: %w", pgerr.Explain(err))
	}
	switch {
	case shared && b.wakeup == Notify:
		return ErrPooler
	case shared && mode == pgx.QueryExecModeDescribeExec:
		return errDescribeExec
	}
	return nil
}

// look reads the planner's settings, which are the same in every session, and checks for a pooler. config is that of
// the pool that will be opened.
func (b *Bus) look(ctx context.Context, config *pgxpool.Config) (planner [6]string, err error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return planner, fmt.Errorf("read the planner's settings: %w", err)
	}
	var backend int32
	p := &planner
	err = conn.QueryRow(ctx, b.sql.Get("planner")).Scan(&p[0], &p[1], &p[2], &p[3], &p[4], &p[5], &backend)
	pooled := err == nil && pg.Pooled(conn.Conn(), backend)
	conn.Release()
	if err != nil {
		return planner, fmt.Errorf("read the planner's settings: %w", pgerr.Explain(err))
	}
	if !pooled {
		return planner, nil
	}
	return planner, checkPooler(ctx, b, config)
}

// openPool makes a separate pool for the workers: a handler that uses the user's pool must not wait for the workers
// that have taken its connections.
func (e *Endpoint) openPool(ctx context.Context) (*pg.Pool, error) {
	config := e.workerConfig()
	if !e.handlers.Leased {
		e.held.connections(config)
	}
	return openPool(ctx, config)
}

func openPool(ctx context.Context, config *pgxpool.Config) (*pg.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return pg.Committed(pool), nil
}

// workerConfig returns the configuration of the workers' pool.
func (e *Endpoint) workerConfig() *pgxpool.Config {
	config := e.bus.workerConfig(e.idleInTx())
	if e.handlers.Leased {
		config.MaxConns = leasedConns
	}
	return config
}

// workerConfig returns the configuration of a pool whose transactions may be idle for idle. MaxConns stays that of
// the bus's pool: there are as many connections as workers, and SetConcurrency may ask for more.
func (b *Bus) workerConfig(idle time.Duration) *pgxpool.Config {
	config := b.pool.Config()
	config.MinConns, config.MinIdleConns = 0, 0
	// a lost connection loses a batch, which costs nothing
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	theirs := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		pg.RegisterArrays(conn.TypeMap())
		if b.wakeup != PollOnly {
			// Not a startup parameter: a server on a system that lacks the check would refuse the connection.
			_, _ = conn.Exec(ctx, b.sql.Get("check_client"))
		}
		if theirs != nil {
			return theirs(ctx, conn)
		}
		return nil
	}
	if b.wakeup != PollOnly { // PgBouncer refuses unknown parameters
		sessionTimeouts(config.ConnConfig.RuntimeParams, idle)
	}
	return config
}

// sessionTimeouts bounds how long a client that has disappeared keeps its batch locked.
func sessionTimeouts(params map[string]string, idle time.Duration) {
	for name, value := range map[string]string{
		"idle_in_transaction_session_timeout": fmt.Sprint(idle.Milliseconds()),
		"tcp_user_timeout":                    "10000",
		"tcp_keepalives_idle":                 "5",
		"tcp_keepalives_interval":             "2",
		"tcp_keepalives_count":                "3",
	} {
		if _, set := params[name]; !set {
			params[name] = value
		}
	}
}
