package lease

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

//go:embed statements.sql
var statements string

// ErrFenced means that the term is over, and a later one has begun. The transaction must not commit.
var ErrFenced = errors.New("another process holds the lease")

// WakePrefix begins the payload of the notification of a released lease; the lease's name follows.
const WakePrefix = "lease:"

// Term is the time of one holder with a lease. The epoch is its fencing number: later terms have larger ones.
type Term struct {
	Name   string
	Holder string
	Epoch  int64
}

// Info is the state of a lease, by the database's clock.
type Info struct {
	Term                // Holder is "" if it was released
	Held      bool      // and not expired
	Resigning bool      // the holder was asked to resign
	Acquired  time.Time // the begin of the term
	Renewed   time.Time // the last renewal
	Expires   time.Time
	Now       time.Time // the database's clock when it was read
}

// DB is implemented by pgx's pools, connections and transactions, and by Line.
type DB interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Store reads and writes the leases of one schema, each by one statement that is a transaction of its own unless db
// is one. It holds no state and is safe for concurrent use.
type Store struct {
	sql     pg.Statements
	channel string
}

// New renders the statements for schema.
func New(schema pg.Schema) *Store {
	return &Store{sql: pg.Load(statements, schema), channel: schema.Channel()}
}

// Bid is a request for a lease. Holder must be a name that no other process has, nor an earlier run of this one: see
// Identity.
type Bid struct {
	Name   string
	Holder string
	Lease  time.Duration // of the term, until it is renewed
}

// Acquire takes the lease if it is free or expired. ok is false if a different holder has it, or is writing under its
// last term.
func (s *Store) Acquire(ctx context.Context, db DB, b Bid) (t Term, ok bool, err error) {
	if t, ok, err = s.bid(ctx, db, b, &sight{}); !ok {
		t = Term{}
	}
	return t, ok, err
}

// bid is Acquire for a process that bids repeatedly. If the bid is lost, t is the winner's term, if the statement
// could read it; the next bid uses seen.
func (s *Store) bid(ctx context.Context, db DB, b Bid, seen *sight) (t Term, ok bool, err error) {
	t = Term{Name: b.Name}
	was := seen.over(time.Now())
	now := sight{}
	var lease int64
	err = db.QueryRow(ctx, s.sql.Get("acquire"), b.Name, b.Holder, b.Lease.Microseconds(), was.epoch, was.version).
		Scan(&ok, &t.Epoch, &t.Holder, &now.version, &lease)
	if errors.Is(err, pgx.ErrNoRows) {
		return Term{}, false, nil
	}
	if err != nil {
		return Term{}, false, fmt.Errorf("acquire lease %s: %w", b.Name, err)
	}
	now.epoch, now.lease, now.first = t.Epoch, time.Duration(lease)*time.Microsecond, time.Now()
	seen.update(now)
	return t, ok, nil
}

// sight is the state in which a bidder found a lost lease: the version of the row, and since when by the bidder's
// clock.
type sight struct {
	epoch   int64
	version string
	lease   time.Duration // length of the term of that version
	first   time.Time
}

// over returns s if its version has not changed for the length of its term: then its holder does not trust it any
// more. Otherwise it returns a sight that matches no row.
func (s *sight) over(now time.Time) sight {
	if s.version == "" || now.Sub(s.first) <= s.lease {
		return sight{}
	}
	return *s
}

func (s *sight) update(now sight) {
	if s.epoch != now.epoch || s.version != now.version {
		*s = now
	}
}

// Renewal is the outcome of a renewal.
type Renewal uint8

// Outcomes of a renewal.
const (
	Lost      Renewal = iota // the term is over for good
	Renewed                  // the term lasts for lease from now
	Resigning                // renewed, and the holder was asked to resign
)

// Renew extends a term that has not expired. After an error the outcome is unknown.
func (s *Store) Renew(ctx context.Context, db DB, t Term, lease time.Duration) (Renewal, error) {
	resign := false
	err := db.QueryRow(ctx, s.sql.Get("renew"), t.Name, t.Holder, t.Epoch, lease.Microseconds()).Scan(&resign)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Lost, nil
	case err != nil:
		return Lost, fmt.Errorf("renew lease %s: %w", t.Name, err)
	case resign:
		return Resigning, nil
	}
	return Renewed, nil
}

// Release ends a term and notifies waiting processes. ok is false if the term was over already. The caller must have
// stopped all work that the lease protects.
func (s *Store) Release(ctx context.Context, db DB, t Term) (ok bool, err error) {
	sent := ""
	err = db.QueryRow(ctx, s.sql.Get("release"), t.Name, t.Holder, t.Epoch, s.channel).Scan(&sent)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("release lease %s: %w", t.Name, err)
	}
	return true, nil
}

// Resign requests that the holder release the lease. ok is false if the lease is free. A notification, or its next
// renewal, informs the holder; it then waits before it bids again.
func (s *Store) Resign(ctx context.Context, db DB, name string) (ok bool, err error) {
	sent := ""
	err = db.QueryRow(ctx, s.sql.Get("resign"), name, s.channel).Scan(&sent)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("resign lease %s: %w", name, err)
	}
	return true, nil
}

// QueueGuard queues a statement that fails the transaction unless t is the lease's latest term, and that keeps the
// next one from beginning until the transaction has ended. It must come before the writes that it protects. Pass the
// error of the pipeline to Fenced.
func (s *Store) QueueGuard(b *pgx.Batch, t Term) {
	b.Queue(s.sql.Get("guard"), t.Name, t.Holder, t.Epoch)
}

// Guard is QueueGuard in a round trip of its own. Its error is ErrFenced if the term is over.
func (s *Store) Guard(ctx context.Context, tx pgx.Tx, t Term) error {
	b := &pgx.Batch{}
	s.QueueGuard(b, t)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("guard by lease %s, epoch %d: %w", t.Name, t.Epoch, Fenced(err))
	}
	return nil
}

// Fenced adds ErrFenced to the error of a guard that failed. It is for pipelines without other guards.
func Fenced(err error) error {
	if pgerr.ClassOf(err) == pgerr.GuardFailed {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// mostListed bounds a list, because the table has a row for each name that was ever used.
const mostListed = 10_000

// List returns the state of the lease of that name, or of every lease if name is "", in the order of their names. A
// lease that was never held is not listed.
func (s *Store) List(ctx context.Context, db pg.Queryer, name string) ([]Info, error) {
	rows, err := db.Query(ctx, s.sql.Get("list"), name, mostListed)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i Info, err error) {
		err = row.Scan(&i.Name, &i.Holder, &i.Epoch, &i.Acquired, &i.Renewed, &i.Expires, &i.Held, &i.Resigning, &i.Now)
		return i, err
	})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return list, nil
}
