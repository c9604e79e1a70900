package outbox

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Store writes and reads the inbox's ids and the copies of relayed messages of one schema. It has no state and is
// safe for concurrent use; transactions are the caller's.
type Store struct {
	inbox pg.Statements
	kept  pg.Statements
	rings *ring.Store
}

// New returns the store of a schema.
func New(schema pg.Schema) *Store {
	return &Store{
		inbox: pg.Load(inboxStatements, schema), kept: pg.Load(keptStatements, schema),
		rings: ring.New(schema),
	}
}

// Execer is a pool, a connection or a transaction of pgx.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Queryer is a pool, a connection or a transaction of pgx.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
