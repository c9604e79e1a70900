package outbox

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5/pgconn"
)

// Store keeps the inbox's ids and the copies of relayed messages of one schema. It holds no state: it is safe for
// concurrent use, and transactions are the caller's.
type Store struct {
	inbox pg.Statements
	ring  pg.Statements
	kept  pg.Statements
}

// New renders the statements for schema.
func New(schema pg.Schema) (*Store, error) {
	s := &Store{}
	for _, file := range []struct {
		text string
		into *pg.Statements
	}{{inboxStatements, &s.inbox}, {ringStatements, &s.ring}, {keptStatements, &s.kept}} {
		sql, err := pg.Load(file.text, schema)
		if err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		*file.into = sql
	}
	return s, nil
}

// Execer is met by pgx's pools, connections and transactions.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}
