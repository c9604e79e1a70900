package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotHeld says that nobody holds a lease of that name.
var ErrNotHeld = errors.New("nobody holds the lease")

// Leases shows and ends terms, for whoever looks after a system: those of Singletons, of schedulers and of partitions.
// Safe for concurrent use.
type Leases struct {
	pool  *pg.Pool
	store *lease.Store
}

// LeaseInfo is how a lease stands, by the database's clock.
type LeaseInfo struct {
	Name      string
	Holder    string // of the present term, or of one that expired; "" when it was released
	Epoch     int64
	Held      bool // somebody holds it: it is neither released nor expired
	Resigning bool // somebody asked the holder to resign
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
	store, err := lease.New(s)
	if err != nil {
		return nil, fmt.Errorf("new leases: %w", err)
	}
	return &Leases{pool: pg.Committed(pool), store: store}, nil
}

// List tells of every lease that was ever held, up to 10,000, by name.
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

// Resign asks the holder to end its term, for another replica to begin one. It returns when the request is stored; the
// holder learns of it at once, or at its next renewal. Its error is ErrNotHeld when there is nobody to ask.
func (l *Leases) Resign(ctx context.Context, name string) error {
	asked, err := l.store.Resign(ctx, l.pool.Writing(), name)
	if err == nil && !asked {
		err = ErrNotHeld
	}
	if err != nil {
		return fmt.Errorf("resign lease %.140q: %w", name, err)
	}
	return nil
}
