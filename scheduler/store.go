package scheduler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed store.sql
var storeStatements string

// Errors that a caller can handle.
var (
	// ErrNoManifest means that the manifest does not exist, or is an orphan where a declared one is needed.
	ErrNoManifest = errors.New("there is no such manifest")
	// ErrNoGroup means that the group does not exist.
	ErrNoGroup = errors.New("there is no such group")
	// ErrNoRun means that the run does not exist. Ended runs are deleted after Options.Retention.
	ErrNoRun = errors.New("there is no such run")
	// ErrEnded means that the run has already ended, in a different way than the caller requested.
	ErrEnded = errors.New("the run has ended")
	// ErrNotCurrent means that the handler's run is over, or has a different attempt now.
	ErrNotCurrent = errors.New("the run is not current")
	// ErrOwned means that another program declares a manifest or a group of this name.
	ErrOwned = errors.New("it belongs to a different owner")
	// ErrTaken means that a different run of the manifest has the place of this one.
	ErrTaken = errors.New("a newer run of its manifest has replaced it")
)

// StoreOptions configure a Store. Every zero is a default.
type StoreOptions struct {
	Schema string     // "" is "edda"
	Codec  saga.Codec // the codec of the bus that sends the messages; nil is saga.JSON
}

// Store reads and writes manifests, groups and runs: the declarations of programs and the changes of operators. It
// holds no state, starts no goroutine, and is safe for concurrent use. Running schedulers react to its changes at
// once if they listen, else at their next poll.
type Store struct {
	tables
	encoder
}

// NewStore makes a Store. It does no I/O.
func NewStore(pool *pgxpool.Pool, o StoreOptions) (*Store, error) {
	if pool == nil {
		return nil, errors.New("scheduler: the pool is nil")
	}
	schema, err := pg.ParseSchema(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	t := tables{pool: pg.Committed(pool), sql: pg.Load(storeStatements, schema)}
	t.audit = auditor{audit.New(schema), t.sql}
	return &Store{t, newEncoder(o.Codec)}, nil
}

// tables are the tables of manifests, groups and runs.
type tables struct {
	pool  *pg.Pool
	sql   pg.Statements
	audit auditor
}

// readCommitted makes Postgres plan each statement of a change for its arguments: a plan that was cached while the
// tables were empty would read all rows of full tables.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite,
	BeginQuery: "begin isolation level read committed read write; set local plan_cache_mode = force_custom_plan"}

// mostRaces is how often a change is tried that a concurrent one defeats, by a deadlock or by the deletion of a row.
const mostRaces = 5

// change runs do in a transaction, and again if it loses against a concurrent change, so do may run more than once.
func (t tables) change(ctx context.Context, do func(tx pgx.Tx) error) (err error) {
	for range mostRaces {
		err = pgx.BeginTxFunc(ctx, t.pool, readCommitted, do)
		if pgerr.ClassOf(err) != pgerr.Race {
			return err
		}
	}
	return err
}

// errLocked means that a different change is in progress.
var errLocked = errors.New("a second program changes manifests at the same time")

// lockPoll is how long a change waits before it tries again to get the lock.
const lockPoll = 20 * time.Millisecond

// alone is change, but with one transaction at a time in the schema. Declarations, pauses and changes of groups use
// it, because live is computed from rows of two tables. It polls instead of waiting in the database, because a
// session that waits holds a snapshot, and the snapshot keeps dead rows of every queue.
func (t tables) alone(ctx context.Context, do func(tx pgx.Tx) error) error {
	for {
		err := t.change(ctx, func(tx pgx.Tx) error {
			free := false
			if err := tx.QueryRow(ctx, t.sql.Get("lock_changes")).Scan(&free); err != nil {
				return fmt.Errorf("lock changes of manifests: %w", err)
			}
			if !free {
				return errLocked
			}
			return do(tx)
		})
		if !errors.Is(err, errLocked) {
			return err
		}
		if err := run.Sleep(ctx, run.Jitter(lockPoll)); err != nil {
			return fmt.Errorf("%w: %w", errLocked, err)
		}
	}
}

// wake wakes schedulers at the commit: "evaluate" if manifests may be due, "dispatch" if runs are queued.
func (t tables) wake(ctx context.Context, tx pgx.Tx, what string) error {
	if _, err := tx.Exec(ctx, t.sql.Get("call"), what); err != nil {
		return fmt.Errorf("wake schedulers: %w", err)
	}
	return nil
}

// now reads the database's clock.
func (t tables) now(ctx context.Context, db queryer) (now time.Time, err error) {
	if err := db.QueryRow(ctx, t.sql.Get("clock")).Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's clock: %w", err)
	}
	return now, nil
}

const (
	toEvaluate = "evaluate"
	toDispatch = "dispatch"
)
