package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotHeld says that no process holds a lease of that name.
var ErrNotHeld = errors.New("nobody holds the lease")

// Leases shows and ends terms, for operators: those of Singletons, of schedulers and of partitions.
// Safe for concurrent use.
type Leases struct {
	pool  *pg.Pool
	store *lease.Store
	audit *audit.Store
}

// LeaseInfo describes a lease, by the database's clock.
type LeaseInfo struct {
	Name      string
	Holder    string // of the present term, or of one that expired; "" when it was released
	Epoch     int64
	Held      bool // a process holds it: it is neither released nor expired
	Resigning bool // the holder was asked to resign
	Acquired  time.Time
	Renewed   time.Time
	Expires   time.Time
	Now       time.Time // when it was read
}

// NewLeases makes a Leases for a schema; "" is "edda".
func NewLeases(pool *pgxpool.Pool, schema string) (*Leases, error) {
	s, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("new leases: %w", err)
	}
	return &Leases{pool: pg.Committed(pool), store: lease.New(s), audit: audit.Of(s)}, nil
}

// List returns every lease that was ever held, up to 10,000, by name.
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

// Resign asks the holder to end its term, so that another replica can begin one. It returns when the request is stored;
// the holder learns of it at once, or at its next renewal. ErrNotHeld if there is no holder.
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

// Health is what this process knows about its lease.
type Health struct {
	Lease string
	Self  string // the name under which this process bids

	Holding  bool // this process has the lease: its function runs
	Stopping bool // and its term has ended, and the function has not returned yet

	// Holder and Epoch are of the term that this process has, else of the one that its last bid met: at most an Acquire
	// interval old. Holder is "" when the lease was free then.
	Holder string
	Epoch  int64

	// by this process's clock, if Holding: no other process can get the lease before then
	TrustedUntil time.Time

	Acquired, Released, Lost int64 // terms of this process that began; and those that ended in order, and otherwise

	Swept Swept // the last pass, where the function is a Sweep
}

// Health returns what this process knows about its lease, without I/O.
func (s *Singleton) Health() Health {
	h := healthOf(s.name, s.keeper.Health())
	if last := s.swept.Load(); last != nil {
		h.Swept = *last
	}
	return h
}

// Leases is Health, as a list of one: for eddaprom.
func (s *Singleton) Leases() []Health { return []Health{s.Health()} }

// healthOf is also for the leases of a Scheduler.
func healthOf(name string, h lease.Health) Health {
	return Health{
		Lease: name, Self: h.Self, Holding: h.State != lease.Standby, Stopping: h.State == lease.Stopping,
		Holder: h.Term.Holder, Epoch: h.Term.Epoch, TrustedUntil: h.Trusted,
		Acquired: h.Acquired, Released: h.Released, Lost: h.Lost,
	}
}
