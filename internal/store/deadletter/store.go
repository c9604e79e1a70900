package deadletter

import (
	"context"
	_ "embed"
	"errors"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed statements.sql
var statements string

// ErrUndeliverable means that the queue of a dead letter does not exist. A Resender returns it, wrapped, and has then
// written nothing.
var ErrUndeliverable = errors.New("the queue of a dead letter does not exist")

// ErrNotFound means that no dead letter has this number, or that it has been retried or discarded.
var ErrNotFound = errors.New("no such dead letter")

// Store reads and writes the dead letters of one schema. It has no state and is safe for concurrent use.
type Store struct {
	sql   pg.Statements
	audit *audit.Store
}

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema), audit.New(schema)} }

// Queryer is a pool, a connection or a transaction of pgx.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Execer is a pool, a connection or a transaction of pgx.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Beginner is a pool or a connection of pgx.
type Beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}
