package bus

import (
	"context"
	"errors"
	"fmt"

	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgerr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPooler: a pooler between the program and Postgres gives each transaction another session, and the bus listens.
// Give it Options.Wakeup PollOnly.
var ErrPooler = errors.New("a pooler in transaction mode stands before Postgres, where neither LISTEN nor the lock " +
	"of a session works: set bus.Options.Wakeup to bus.PollOnly")

var errDescribeExec = errors.New("a pooler in transaction mode stands before Postgres, where " +
	"default_query_exec_mode=describe_exec describes a query in one session and may execute it in another: use " +
	"cache_describe")

// checkPooler is called when something stands between us and Postgres. A pooler that leaves each client its session is
// as good as none. Behind one that does not, LISTEN is accepted and nothing is heard; and the lock that says that this
// process lives would stay with a session of the pooler's, so that others would not see its death, or see it die while
// it lives.
func checkPooler(ctx context.Context, b *Bus, config *pgxpool.Config) error {
	mode := config.ConnConfig.DefaultQueryExecMode
	if b.wakeup == PollOnly && mode == pgx.QueryExecModeCacheDescribe {
		return nil // nothing that it needs can be missing
	}
	shared, err := pg.SharesSessions(ctx, config)
	if err != nil {
		return fmt.Errorf("look at the pooler before Postgres: %w", pgerr.Explain(err))
	}
	switch {
	case shared && b.wakeup == Notify:
		return ErrPooler
	case shared && mode == pgx.QueryExecModeDescribeExec:
		return errDescribeExec
	}
	return nil
}

// look reads what is so in any session, and looks what stands between us and Postgres. config is that of the pool which
// is to be opened.
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

// openPool makes the workers' own pool: a handler that uses the user's pool must not wait for the very workers
// that fill it.
func (e *Endpoint) openPool(ctx context.Context) (*pg.Pool, error) {
	return openPool(ctx, e.workerConfig())
}

func openPool(ctx context.Context, config *pgxpool.Config) (*pg.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return pg.Committed(pool), nil
}

// workerConfig is that of the workers' pool.
func (e *Endpoint) workerConfig() *pgxpool.Config {
	config := e.bus.workerConfig(e.idleInTx())
	if e.handlers.Leased {
		config.MaxConns = leasedConns
	}
	return config
}

// workerConfig is that of a pool whose transactions may stand still for idle. MaxConns stays that of the bus's pool:
// there are as many connections as workers, and SetConcurrency may ask for more.
func (b *Bus) workerConfig(idle time.Duration) *pgxpool.Config {
	config := b.pool.Config()
	config.MinConns, config.MinIdleConns = 0, 0
	// a lost connection loses a batch, which is free
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	theirs := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		pg.RegisterArrays(conn.TypeMap())
		if b.wakeup != PollOnly {
			// Not a startup parameter: a server on a system that cannot check refuses it, and need not have it.
			_, _ = conn.Exec(ctx, b.sql.Get("check_client"))
		}
		if theirs != nil {
			return theirs(ctx, conn)
		}
		return nil
	}
	if b.wakeup != PollOnly { // PgBouncer refuses parameters it does not know
		sessionTimeouts(config.ConnConfig.RuntimeParams, idle)
	}
	return config
}

// sessionTimeouts bound how long a client that has vanished keeps its batch locked.
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
