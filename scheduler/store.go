package scheduler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed store.sql
var storeStatements string

// Errors that a caller can act on.
var (
	// ErrNoManifest: there is no manifest of that name, or it is an orphan and what was asked needs one that is not.
	ErrNoManifest = errors.New("there is no such manifest")
	// ErrNoGroup: there is no group of that name.
	ErrNoGroup = errors.New("there is no such group")
	// ErrNoRun: there is no run of that id. Runs that ended long ago are cleaned up.
	ErrNoRun = errors.New("there is no such run")
	// ErrEnded: the run has ended otherwise than was asked for.
	ErrEnded = errors.New("the run has ended")
	// ErrNotCurrent: the run of the handler is over, or has another attempt.
	ErrNotCurrent = errors.New("the run is not current")
	// ErrOwned: another program declares a manifest or a group of that name.
	ErrOwned = errors.New("it belongs to another owner")
	// ErrTaken: another run of the manifest has the place of this one.
	ErrTaken = errors.New("another run of its manifest has taken its place")
)

// StoreOptions of a Store. Every zero is a default.
type StoreOptions struct {
	Schema string     // "" is "edda"
	Codec  saga.Codec // nil is saga.JSON; that of the bus which sends the messages
}

// Store keeps manifests, groups and runs: what programs declare and operators change. It holds no state and starts
// nothing: it is safe for concurrent use. Running schedulers see what it changes at once if they listen, else within
// their poll interval.
type Store struct {
	tables
	encoder
}

// NewStore makes a Store. It does not use the pool yet.
func NewStore(pool *pgxpool.Pool, o StoreOptions) (*Store, error) {
	if pool == nil {
		return nil, errors.New("scheduler: the pool is nil")
	}
	schema, err := pg.ParseSchema(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	t := tables{pool: pg.Committed(pool), sql: pg.Load(storeStatements, schema)}
	t.audit = auditor{audit.Of(schema), t.sql}
	return &Store{t, newEncoder(o.Codec)}, nil
}

// tables are where manifests, groups and runs are stored.
type tables struct {
	pool  *pg.Pool
	sql   pg.Statements
	audit auditor
}

// readCommitted has each statement of a change planned for its arguments: a plan that was kept from empty tables would
// read all of the full ones.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite,
	BeginQuery: "begin isolation level read committed read write; set local plan_cache_mode = force_custom_plan"}

// mostRaces is how often a change is tried that lost to another one: by a deadlock, or a row that was deleted
// meanwhile.
const mostRaces = 5

// change runs do in a transaction, and again if another change won, so do may run more than once.
func (t tables) change(ctx context.Context, do func(tx pgx.Tx) error) (err error) {
	for range mostRaces {
		err = pgx.BeginTxFunc(ctx, t.pool, readCommitted, do)
		if pgerr.ClassOf(err) != pgerr.Race {
			return err
		}
	}
	return err
}

// errLocked is a change that found another one going on.
var errLocked = errors.New("another program changes manifests")

// lockPoll is how long a change waits before it looks again for the end of another.
const lockPoll = 20 * time.Millisecond

// alone is change, one at a time in the schema. Declarations, pauses and groups change through it, because live is
// computed from rows of two tables. It polls and does not wait in the database: a session that waits holds a snapshot,
// which keeps the dead rows of every queue.
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

// wake wakes schedulers when the transaction commits: "evaluate" for what may be due, "dispatch" for what is queued.
func (t tables) wake(ctx context.Context, tx pgx.Tx, what string) error {
	if _, err := tx.Exec(ctx, t.sql.Get("call"), what); err != nil {
		return fmt.Errorf("wake schedulers: %w", err)
	}
	return nil
}

// now is the database's clock.
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
