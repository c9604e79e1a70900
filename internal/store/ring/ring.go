package ring

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed ring.sql
var statements string

// Name is the name of a ring.
type Name string

// The rings.
const (
	Inbox   Name = "inbox"   // ids of messages that came from other systems
	Outbox  Name = "outbox"  // copies of messages that were relayed to them
	History Name = "history" // events of messages and instances
)

// Store has the statements of one schema. It has no state and is safe for concurrent use.
type Store struct{ ring pg.Statements }

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

const (
	rotatePiece = "50ms" // how long the rotation waits for writers, while others wait behind it
	rotatePause = 200 * time.Millisecond
	rotateTries = 25
)

// ErrHeld is returned if a ring that is due did not rotate: transactions that write into it, or have read it, stay
// open. It keeps its rows for longer.
var ErrHeld = errors.New("open transactions block it: end them, then try again")

// Rotate rotates a ring if that is due, and reports whether it did. While transactions that have written into it stay
// open it tries again, for about five seconds. Then it returns ErrHeld, and names the session whose transaction is
// the oldest.
func (s *Store) Rotate(ctx context.Context, db pgBeginner, ring Name) (rotated bool, err error) {
	for range rotateTries {
		rotated, err = s.tryRotate(ctx, db, ring)
		if pgerr.ClassOf(err) != pgerr.Busy {
			break
		}
		if err := run.Sleep(ctx, run.Jitter(rotatePause)); err != nil {
			return false, err
		}
	}
	if pgerr.ClassOf(err) == pgerr.Busy {
		return false, fmt.Errorf("rotate the ring of %s: %w: %s", ring, ErrHeld, s.holder(ctx, db, ring))
	}
	if err != nil {
		return false, fmt.Errorf("rotate the ring of %s: %w", ring, err)
	}
	return rotated, nil
}

func (s *Store) tryRotate(ctx context.Context, db pgBeginner, ring Name) (rotated bool, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(s.ring.Get("lock_timeout"), rotatePiece)
		b.Queue(s.ring.Get("rotate"), string(ring)).QueryRow(func(row pgx.Row) error { return row.Scan(&rotated) })
		return tx.SendBatch(ctx, b).Close()
	})
	return rotated && err == nil, err
}

// holder returns the name of a session that holds a ring.
func (s *Store) holder(ctx context.Context, db pgBeginner, ring Name) (name string) {
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.ring.Get("holder"), string(ring)).Scan(&name)
	})
	if err != nil {
		return "an unknown session"
	}
	return name
}

// pgBeginner is implemented by pgx's pools and connections.
type pgBeginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// SetKeep sets how long a ring keeps its rows: at least keep, and at most a third longer.
func (s *Store) SetKeep(ctx context.Context, db execer, ring Name, keep time.Duration) error {
	if err := checkKeep(keep); err != nil {
		return err
	}
	_, err := db.Exec(ctx, s.ring.Get("set_keep"), string(ring), keep.Microseconds())
	if err != nil {
		return fmt.Errorf("set the retention of the %s: %w", ring, err)
	}
	return nil
}

// KeepAtLeast is SetKeep, unless the ring keeps its rows for longer already.
func (s *Store) KeepAtLeast(ctx context.Context, db execer, ring Name, keep time.Duration) error {
	if err := checkKeep(keep); err != nil {
		return err
	}
	_, err := db.Exec(ctx, s.ring.Get("keep_at_least"), string(ring), keep.Microseconds())
	if err != nil {
		return fmt.Errorf("set the retention of the %s: %w", ring, err)
	}
	return nil
}

const (
	leastKeep = time.Minute
	mostKeep  = 10 * 365 * 24 * time.Hour
)

func checkKeep(keep time.Duration) error {
	if keep < leastKeep || keep > mostKeep {
		return fmt.Errorf("keep is %v, want %v to %v", keep, leastKeep, mostKeep)
	}
	return nil
}

// SetMost sets how many bytes the tables of a ring may have, with their indexes. A ring whose slot has grown to a
// quarter of that is due to rotate, however short its rows have been kept. 0 means no limit.
func (s *Store) SetMost(ctx context.Context, db execer, ring Name, bytes int64) error {
	if bytes < 0 || bytes > 0 && bytes < leastMost {
		return fmt.Errorf("the maximum size is %d bytes, want 0 (no limit), or %d or more", bytes, leastMost)
	}
	if _, err := db.Exec(ctx, s.ring.Get("set_most"), string(ring), bytes); err != nil {
		return fmt.Errorf("set the maximum size of the %s: %w", ring, err)
	}
	return nil
}

const leastMost = 1 << 20

// Info describes a ring.
type Info struct {
	Ring  Name
	Slot  int           // the slot in use
	Keep  time.Duration // how long rows stay at least
	Most  int64         // bytes that its tables may have, 0 is no limit
	Bytes int64         // current size
	Since time.Time     // of the last rotation, by the database's clock
}

// List describes all rings.
func (s *Store) List(ctx context.Context, db queryer) ([]Info, error) {
	rows, err := db.Query(ctx, s.ring.Get("rings"))
	if err != nil {
		return nil, fmt.Errorf("read the rings: %w", err)
	}
	infos, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i Info, err error) {
		var keep int64
		err = row.Scan(&i.Ring, &i.Slot, &keep, &i.Since, &i.Most, &i.Bytes)
		i.Keep = time.Duration(keep) * time.Microsecond
		return i, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the rings: %w", err)
	}
	return infos, nil
}

// queryer and execer are implemented by pgx's pools, connections and transactions.
type (
	queryer interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
	execer interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	}
)
