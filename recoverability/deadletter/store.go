package deadletter

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed statements.sql
var statements string

// ErrUndeliverable is wrapped by what a Resender returns for letters that have nowhere to go. It has written nothing
// then.
var ErrUndeliverable = errors.New("the queue of a dead letter does not exist")

// ErrNotFound: there is no such dead letter, or it has been retried or discarded.
var ErrNotFound = errors.New("no such dead letter")

// Letter is a message nobody tries again by himself. Number is its own key, given by the table.
type Letter struct {
	Number      int64
	Endpoint    string // where it died, and where a retry puts it
	MessageID   saga.ID
	Kind        string
	Header      []byte
	Body        []byte
	Attempts    int
	Conflicts   int
	Reason      string    // which rule ended it
	Error       string    // the last error, at most MaxText bytes
	Sent        time.Time // zero when unknown, as is FirstFailed
	FirstFailed time.Time
	Died        time.Time // by the database's clock, whatever is given to QueueLetters, as is Group
	Group       string    // of dead letters with the same endpoint, kind, reason and shape of the error
}

// Discarded says that a message was consumed without effect, and why. Number and At are the table's.
type Discarded struct {
	Number    int64
	Endpoint  string
	MessageID saga.ID
	Kind      string
	Saga, Key string // "" when the message was for no instance
	Reason    string
	At        time.Time
}

// Store keeps the letters of one schema. It holds no state: it is safe for concurrent use.
type Store struct{ sql pg.Statements }

// New renders the statements for schema.
func New(schema pg.Schema) (*Store, error) {
	sql, err := pg.Load(statements, schema)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Store{sql: sql}, nil
}

// Queryer is met by pgx's pools, connections and transactions.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Execer is met by pgx's pools, connections and transactions.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Beginner is met by pgx's pools and connections.
type Beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}
