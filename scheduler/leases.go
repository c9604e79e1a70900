package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotHeld means that no process holds a lease of this name.
var ErrNotHeld = errors.New("no process holds the lease")

// Leases lists leases and asks their holders to resign, for operators: the leases of Singletons, of schedulers and of
// partitions. It is safe for concurrent use.
type Leases struct {
	pool  *pg.Pool
	store *lease.Store
	audit *audit.Store
}

// LeaseInfo describes a lease, by the database's clock.
type LeaseInfo struct {
	Name      string
	Holder    string // of the present term, or of an expired one; "" if it was released
	Epoch     int64
	Held      bool // a process holds it: it is neither released nor expired
	Resigning bool // an operator has asked the holder to resign
	Acquired  time.Time
	Renewed   time.Time
	Expires   time.Time
	Now       time.Time // the database's clock when it was read
}

// NewLeases makes a Leases for a schema; "" is "edda". It does no I/O.
func NewLeases(pool *pgxpool.Pool, schema string) (*Leases, error) {
	s, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("new leases: %w", err)
	}
	return &Leases{pool: pg.Committed(pool), store: lease.New(s), audit: audit.New(s)}, nil
}

// List returns every lease that was ever held, at most 10,000, in the order of their names.
func (l *Leases) List(ctx context.Context) ([]LeaseInfo, error) {
	found, err := l.store.List(ctx, l.pool, "")
	if err != nil {
		return nil, err
	}
	infos := make([]LeaseInfo, len(found))
	for n, i := range found {
		infos[n] = LeaseInfo{
			Name: i.Name, Holder: i.Holder, Epoch: i.Epoch, Held: i.Held, Resigning: i.Resigning,
			Acquired: i.Acquired, Renewed: i.Renewed, Expires: i.Expires, Now: i.Now,
		}
	}
	return infos, nil
}

// Resign asks the holder to end its term, so that another replica can begin one. It returns when the request is
// committed; the holder receives it at once, or at its next renewal. It returns ErrNotHeld if there is no holder.
func (l *Leases) Resign(ctx context.Context, name string) error {
	err := pgx.BeginTxFunc(ctx, l.pool, readCommitted, func(tx pgx.Tx) error {
		asked, err := l.store.Resign(ctx, tx, name)
		if err == nil && !asked {
			err = ErrNotHeld
		}
		if err != nil {
			return err
		}
		return l.audit.Add(ctx, tx, audit.Change{Verb: "lease.resign", Target: name})
	})
	if err != nil {
		return fmt.Errorf("resign lease %.140q: %w", name, err)
	}
	return nil
}

// Health is the state of a lease in the memory of this process.
type Health struct {
	Lease string
	Self  string // this process's name in its bids

	Holding  bool // this process holds the lease: its function is running
	Stopping bool // its term has ended, but the function has not returned yet

	// Holder and Epoch describe this process's own term, or else the term that its last bid found: at most an Acquire
	// interval old. Holder is "" if the lease was free then.
	Holder string
	Epoch  int64

	// if Holding, by this process's clock: no other process can acquire the lease before this time
	TrustedUntil time.Time

	Acquired, Released, Lost int64 // terms of this process that began, that ended in order, and that ended otherwise

	Swept Swept // the last pass, if the function is a Sweep
}

// Health returns the state of the lease in the memory of this process, without I/O.
func (s *Singleton) Health() Health {
	h := healthOf(s.name, s.keeper.Health())
	if last := s.swept.Load(); last != nil {
		h.Swept = *last
	}
	return h
}

// Leases returns Health as a list of one, for eddaprom.
func (s *Singleton) Leases() []Health { return []Health{s.Health()} }

// healthOf also serves the lease of a Scheduler.
func healthOf(name string, h lease.Health) Health {
	return Health{
		Lease: name, Self: h.Self, Holding: h.State != lease.Standby, Stopping: h.State == lease.Stopping,
		Holder: h.Term.Holder, Epoch: h.Term.Epoch, TrustedUntil: h.Trusted,
		Acquired: h.Acquired, Released: h.Released, Lost: h.Lost,
	}
}
