package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
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
func (b *Bus) checkPooler(ctx context.Context, config *pgxpool.Config) error {
	mode := config.ConnConfig.DefaultQueryExecMode
	if b.wakeup == PollOnly && mode == pgx.QueryExecModeCacheDescribe {
		return nil // nothing that it needs can be missing
	}
	shared, err := pg.SharesSessions(ctx, config)
	if err != nil {
		return fmt.Errorf("look at the pooler before Postgres: %w", pg.Explain(err))
	}
	switch {
	case shared && b.wakeup == Notify:
		return ErrPooler
	case shared && mode == pgx.QueryExecModeDescribeExec:
		return errDescribeExec
	}
	return nil
}
