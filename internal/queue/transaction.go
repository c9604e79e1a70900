package queue

import (
	_ "embed"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

//go:embed transaction.sql
var transactionSQL string

var transaction = sync.OnceValue(func() pg.Statements { return pg.Parse(transactionSQL) })

// Begin is read committed, whatever the session's default is: every statement must see what others committed before it,
// and a row that moved is looked at again instead of failing the transaction.
const Begin = "begin isolation level read committed read write"

// Open returns the statement that keeps the planner to plans that reach their rows by an index or a ctid.
func Open() string { return transaction().Get("open") }

// OpenLeased returns Open for a leased endpoint, with a bound for waiting as its parameter.
func OpenLeased() string { return transaction().Get("open_leased") }

// ReadNow reads the time at which the transaction began, by the database's clock, from the row of Open and OpenLeased.
func ReadNow(now *time.Time) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			*now = pg.CurrentRow(rows).Time(0)
		}
		return rows.Err()
	}
}

// BoundIdle returns the statement that has the server end a transaction which stands still for longer than its
// parameter.
func BoundIdle() string { return transaction().Get("bound_idle") }

// LockTimeout returns the statement that bounds how long the transaction waits for a lock.
func LockTimeout() string { return transaction().Get("lock_timeout") }
