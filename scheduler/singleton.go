package scheduler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed singleton.sql
var singletonStatements string

// Singleton is a loop of yours that runs on one replica at a time: on the holder of its lease. It is safe for
// concurrent use.
type Singleton struct {
	pool    *pg.Pool
	schema  pg.Schema
	sql     pg.Statements
	leases  *lease.Store
	keeper  *lease.Keeper
	name    string // of the lease
	run     func(Term) error
	options SingletonOptions
	calls   run.Calls // calls of run
	swept   atomic.Pointer[Swept]
}

// SingletonOptions configure a Singleton. Every zero is a default, and a negative number is an error.
type SingletonOptions struct {
	Schema string // "" is "edda"

	// Lease is how long a term lasts without a renewal: 100 ms to 1 h; 0 is 30 s. If a holder crashes, the next one
	// begins after at most Lease + 1.25 × Acquire.
	Lease time.Duration
	// how often the holder renews, and how long a renewal may take; 0 is Lease/3, at most 10 s; at most Lease/3
	Renew time.Duration
	// how often other processes bid, ± a quarter, and the pause after a term; 0 is Lease/3, at most 5 s
	Acquire time.Duration
	// how long before the end in the database the holder gives up; 0 is Lease/10, at most 1 s; at most Lease/3
	Margin time.Duration
	Stop   time.Duration // how long run may take to return after its term ends, while the lease is renewed; 0 is 30 s

	// Holder is the name of this process in the table lease. "" is $EDDA_HOLDER, else the name of the host, else a
	// UUID. A random part is always added, so a restarted process is a different holder.
	Holder string

	// PollOnly avoids LISTEN, which does not work through PgBouncer in transaction mode. Then the next process
	// acquires a released lease at its next bid, not at once.
	PollOnly bool

	Logger *slog.Logger // nil is slog.Default(). Terms are logged at Info, renewals and lost bids at Debug
}

const singletonLease = 30 * time.Second

func (o SingletonOptions) withDefaults() SingletonOptions {
	option.Default(&o.Lease, singletonLease)
	option.Default(&o.Renew, min(10*time.Second, o.Lease/3))
	option.Default(&o.Stop, 30*time.Second)
	o.Logger = handlers.Logger(o.Logger)
	return o
}

// singletonPrefix separates the names of users' leases from the names of Edda's leases.
const singletonPrefix = "singleton/"

// NewSingleton makes a Singleton. It does no I/O, and its error lists all faults. The lease is named "singleton/" +
// name; name is 1 to 117 characters of a-z, 0-9 and _ . / -, the first a letter.
//
// run is called for each term of this replica. It must return soon after its Term has ended, and may return before
// that. When run has returned, and never before, the lease is released, and after an Acquire interval this replica
// bids again. An error of run is logged. So is a panic, which ends the term but not the process.
func NewSingleton(pool *pgxpool.Pool, name string, run func(Term) error, o SingletonOptions) (*Singleton, error) {
	o = o.withDefaults()
	s := &Singleton{pool: pg.Committed(pool), name: singletonPrefix + name, run: run, options: o}
	var faults []error
	if pool == nil {
		faults = append(faults, errors.New("the pool is nil"))
	}
	if run == nil {
		faults = append(faults, errors.New("run is nil"))
	}
	if err := lease.CheckName(name); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, s.load(o.Schema))
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("new singleton %.60q: %w", name, err)
	}
	keeper, err := lease.NewKeeper(pool, s.leases, lease.Job{Name: s.name, Run: s.work}, lease.Options{
		Lease: o.Lease, Renew: o.Renew, Acquire: o.Acquire, Margin: o.Margin, Stop: o.Stop, Holder: o.Holder,
		Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("new singleton %s: %w", name, err)
	}
	s.keeper = keeper
	return s, nil
}

func (s *Singleton) load(schema string) (err error) {
	if s.schema, err = pg.ParseSchema(schema); err != nil {
		return err
	}
	s.sql, s.leases = pg.Load(singletonStatements, s.schema), lease.New(s.schema)
	return nil
}

// Name returns the name of the lease.
func (s *Singleton) Name() string { return s.name }

// Connections returns the pool, and how many connections Run opens in addition to the pool's: one that renews, and
// one that listens. With PollOnly it returns 0, because a pooler's connections are not counted.
func (s *Singleton) Connections() (pool *pgxpool.Pool, more int) {
	if s.options.PollOnly {
		return s.pool.Pool, 0
	}
	return s.pool.Pool, 2
}

// Check reads the version of the schema. It returns migrations.ErrNotMigrated, migrations.ErrTooNew, or the error
// that kept it from reading.
func (s *Singleton) Check(ctx context.Context) error {
	if err := version.Check(ctx, s.pool, s.schema); err != nil {
		return fmt.Errorf("check singleton %s: %w", s.name, err)
	}
	return nil
}

// Run bids for the lease, and calls run while this replica holds it, until ctx ends. Then it ends the term, waits until
// run has returned, releases the lease, and returns nil. It waits at most for Stop and two seconds: after that it
// returns bus.ErrDrain, and the lease expires by itself. Run returns an error of Check, ErrRunning if Run is already
// running, or an error that waiting cannot cure, such as a missing right. If the database is away, Run waits for it.
func (s *Singleton) Run(ctx context.Context) error {
	if err := s.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	group := run.NewGroup(ctx)
	if !s.options.PollOnly {
		listener := lease.Listener{Pool: s.pool.Pool, Channel: s.schema.Channel(), Heard: s.heard,
			Logger: s.options.Logger}
		group.Go(listener.Run)
	}
	group.Go(s.bid)
	return group.Wait()
}

// bid is Run without a listener of its own: the caller listens, and calls heard.
func (s *Singleton) bid(ctx context.Context) error {
	s.options.Logger.Info("edda: singleton stands by", "lease", s.name, "self", s.keeper.Health().Self)
	ends := run.Ends{Name: s.name, Drain: s.options.Stop, Log: s.options.Logger, Calls: &s.calls}
	err := ends.Run(ctx, s.keeper.Run)
	if errors.Is(err, lease.ErrRunning) {
		err = ErrRunning
	}
	if err != nil {
		return fmt.Errorf("run singleton %s: %w", s.name, err)
	}
	return nil
}

// heard is called with the payload of each notification, and with "" when notifications may have been missed.
func (s *Singleton) heard(payload string) {
	if payload == "" || payload == lease.WakePrefix+s.name {
		s.keeper.Wake()
	}
}

// work runs one term.
func (s *Singleton) work(ctx context.Context, t lease.Term) error {
	err := s.call(&term{Context: ctx, of: s, Term: t})
	if broken := (*saga.PanicError)(nil); errors.As(err, &broken) {
		s.options.Logger.Error("edda: the function under a lease panicked", "lease", s.name, "holder", t.Holder,
			"epoch", t.Epoch, "panic", broken.Value, "stack", string(broken.Stack))
		return nil
	}
	return err
}

func (s *Singleton) call(t Term) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &saga.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	defer s.calls.Enter("the function of "+s.name, [16]byte{}, time.Now())()
	return saga.Examined(s.run(t))
}

// note stores the report of the last pass of a Sweep.
func (s *Singleton) note(last Swept) {
	s.swept.Store(&last)
	if last.Took > last.Every {
		s.options.Logger.Warn("edda: a sweep took longer than its interval", "lease", s.name, "took", last.Took,
			"every", last.Every)
	}
}
