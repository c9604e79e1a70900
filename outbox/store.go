package outbox

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Store keeps the inbox's ids and the copies of relayed messages of one schema. It holds no state: it is safe for
// concurrent use, and transactions are the caller's.
type Store struct {
	inbox pg.Statements
	kept  pg.Statements
	rings *ring.Store
}

// New renders the statements for schema.
func New(schema pg.Schema) *Store {
	return &Store{
		inbox: pg.Load(inboxStatements, schema), kept: pg.Load(keptStatements, schema),
		rings: ring.New(schema),
	}
}

// Execer is met by pgx's pools, connections and transactions.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Queryer is met by pgx's pools, connections and transactions.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
