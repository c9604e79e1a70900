package deadletter

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
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

// Letter is a message that is no longer retried. Number is its key, assigned by the table.
type Letter struct {
	Number      int64
	Endpoint    string // where it failed; a retry sends it there
	MessageID   saga.ID
	Kind        string
	Header      []byte
	Body        []byte
	Attempts    int
	Conflicts   int
	Reason      string    // the rule that ended it
	Error       string    // the last error, at most MaxText bytes
	Sent        time.Time // zero if unknown, like FirstFailed
	FirstFailed time.Time
	Died        time.Time // set by the database's clock; QueueLetters ignores Died and Group
	Group       string    // shared by dead letters with the same endpoint, kind, reason and shape of the error
}

// Discarded records that a message was consumed without effect, and why. The table sets Number and At.
type Discarded struct {
	Number    int64
	Endpoint  string
	MessageID saga.ID
	Kind      string
	Saga, Key string // "" if the message was not for an instance
	Reason    string
	At        time.Time
}

// Store reads and writes the dead letters of one schema. It has no state and is safe for concurrent use.
type Store struct {
	sql   pg.Statements
	audit *audit.Store
}

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema), audit.Of(schema)} }

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
