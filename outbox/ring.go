package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pgerr"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

//go:embed ring.sql
var ringStatements string

// Ring names one of the two rings: tables of four partitions that are emptied one after another, three times within the
// time that their rows are kept.
type Ring string

// The rings.
const (
	Inbox  Ring = "inbox"  // ids of messages that came from other systems
	Outbox Ring = "outbox" // copies of messages that were relayed to them
)

const (
	rotatePiece = "50ms" // that the rotation waits for writers, while others wait behind it
	rotatePause = 200 * time.Millisecond
	rotateTries = 25
)

// ErrHeld is why a ring that is due did not rotate: transactions that write into it, or have looked at it, stay open.
// It keeps its rows for longer.
var ErrHeld = errors.New("open transactions block it: end those, then try again")

// Rotate rotates a ring when that is due, and reports whether it did. While ids are written in transactions that stay
// open it tries again, for some five seconds. Then it fails with ErrHeld, and names the session that has been in a
// transaction for longest.
func (s *Store) Rotate(ctx context.Context, db pgBeginner, ring Ring) (rotated bool, err error) {
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

func (s *Store) tryRotate(ctx context.Context, db pgBeginner, ring Ring) (rotated bool, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(s.ring.Get("lock_timeout"), rotatePiece)
		b.Queue(s.ring.Get("rotate"), string(ring)).QueryRow(func(row pgx.Row) error { return row.Scan(&rotated) })
		return tx.SendBatch(ctx, b).Close()
	})
	return rotated && err == nil, err
}

// holder names a session that holds a ring.
func (s *Store) holder(ctx context.Context, db pgBeginner, ring Ring) (name string) {
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.ring.Get("holder"), string(ring)).Scan(&name)
	})
	if err != nil {
		return "it is not known which"
	}
	return name
}

// pgBeginner is met by pgx's pools and connections.
type pgBeginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// SetKeep sets how long a ring keeps its rows: at least keep, and at most a third longer.
func (s *Store) SetKeep(ctx context.Context, db Execer, ring Ring, keep time.Duration) error {
	if err := checkKeep(keep); err != nil {
		return err
	}
	_, err := db.Exec(ctx, s.ring.Get("set_keep"), string(ring), keep.Microseconds())
	if err != nil {
		return fmt.Errorf("set how long the %s is kept: %w", ring, err)
	}
	return nil
}

// KeepAtLeast is SetKeep, unless the ring keeps its rows for longer already.
func (s *Store) KeepAtLeast(ctx context.Context, db Execer, ring Ring, keep time.Duration) error {
	if err := checkKeep(keep); err != nil {
		return err
	}
	_, err := db.Exec(ctx, s.ring.Get("keep_at_least"), string(ring), keep.Microseconds())
	if err != nil {
		return fmt.Errorf("set how long the %s is kept: %w", ring, err)
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

// RingInfo describes a ring.
type RingInfo struct {
	Ring  Ring
	Slot  int           // that is written into
	Keep  time.Duration // how long rows stay at least
	Since time.Time     // of the last rotation, by the database's clock
}

// Rings describes both rings.
func (s *Store) Rings(ctx context.Context, db Queryer) ([]RingInfo, error) {
	rows, err := db.Query(ctx, s.ring.Get("rings"))
	if err != nil {
		return nil, fmt.Errorf("read the rings: %w", err)
	}
	infos, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i RingInfo, err error) {
		var keep int64
		err = row.Scan(&i.Ring, &i.Slot, &keep, &i.Since)
		i.Keep = time.Duration(keep) * time.Microsecond
		return i, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the rings: %w", err)
	}
	return infos, nil
}

// Queryer is met by pgx's pools, connections and transactions.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
