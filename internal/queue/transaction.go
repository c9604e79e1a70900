package queue

import (
	_ "embed"
	"sync"

	"github.com/edda-go/edda/internal/pg"
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

// BoundIdle returns the statement that has the server end a transaction which stands still for longer than its
// parameter.
func BoundIdle() string { return transaction().Get("bound_idle") }

// LockTimeout returns the statement that bounds how long the transaction waits for a lock.
func LockTimeout() string { return transaction().Get("lock_timeout") }
