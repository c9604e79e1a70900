package queue

import (
	_ "embed"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

//go:embed transaction.sql
var transactionSQL string

var transaction = sync.OnceValue(func() pg.Statements { return pg.Parse(transactionSQL) })

// Begin sets read committed, whatever the session's default is: every statement must read what others committed
// before it, and a row that moved is read again instead of failing the transaction.
const Begin = "begin isolation level read committed read write"

// Open queues the statement that limits the planner to plans that reach their rows by an index or a ctid. It reads
// the begin of the transaction, by the database's clock, into now, unless that is nil.
func Open(pipeline *pgx.Batch, now *time.Time) {
	pipeline.Queue(transaction().Get("open")).Query(readNow(now))
}

// OpenLeased is Open for a leased endpoint. The transaction waits for nothing longer than bound.
func OpenLeased(pipeline *pgx.Batch, bound string, now *time.Time) {
	pipeline.Queue(transaction().Get("open_leased"), bound).Query(readNow(now))
}

func readNow(now *time.Time) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if now != nil {
				*now = pg.CurrentRow(rows).Time(0)
			}
		}
		return rows.Err()
	}
}

// BoundIdle returns the statement that makes the server end a transaction which is idle for longer than its
// parameter.
func BoundIdle() string { return transaction().Get("bound_idle") }

// LockTimeout returns the statement that bounds how long the transaction waits for a lock.
func LockTimeout() string { return transaction().Get("lock_timeout") }
