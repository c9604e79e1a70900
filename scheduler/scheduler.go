package scheduler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/unguard"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed statements.sql
var statements string

// LeaseName is the lease of the one server that evaluates and reconciles.
const LeaseName = "scheduler"

// Scheduler runs the four loops: see the comment of the package. Its methods are safe for concurrent use.
type Scheduler struct {
	*Store
	pool    *pg.Pool
	schema  pg.Schema
	sql     pg.Statements
	sender  Sender
	options Options
	log     *slog.Logger
	outage  *pg.Outage
	calm    *slog.Logger // for warnings of what is tried again: it hides most of them while the database is away

	leases   *lease.Store
	keeper   *lease.Keeper
	lockKey  int64
	declared []Manifest

	due      run.Nudge // something may be due
	ready    run.Nudge // something may be ready for dispatch
	ringing  quiet
	aside    aside
	reminded int64 // the last follower that the sweep has looked at; the sweep's own
	guards   guards
	pace     pace
	running  sync.Mutex // held by Run

	singletons singletons
	swept      atomic.Pointer[Swept] // the last reconciliation of this server
}

// noTerm is that of a scheduler that asks for no lease, as tests do.
var noTerm lease.Term

// guards are taken away by tests, to see that the unique indexes keep the promise without them.
type guards struct {
	noLease, noLock bool
	loaded          func() // called between the load of a cycle and its decision
}

// pace is how long a run waits whose message could not be sent: first, doubling, most.
type pace struct{ first, most time.Duration }

// New makes a Scheduler over pool. It does no I/O. The manifests, if there are any, are those of Options.Owner, and
// stand in the database when Run has begun. It fails when an option or a manifest is wrong, naming it.
func New(pool *pgxpool.Pool, sender Sender, o Options, m ...Manifest) (*Scheduler, error) {
	s, err := newScheduler(pool, sender, o)
	if err == nil && (o.Owner != "" || len(o.Groups)+len(m) > 0) {
		s.declared = m
		_, err = s.declare(o.Owner, o.Groups, m)
	}
	if err != nil {
		return nil, fmt.Errorf("new scheduler: %w", err)
	}
	return s, nil
}

func newScheduler(pool *pgxpool.Pool, sender Sender, o Options) (*Scheduler, error) {
	if pool == nil || sender == nil {
		return nil, errors.New("the pool and the Sender must not be nil")
	}
	o, faults := o.withDefaults()
	schema, err := pg.ParseSchema(o.Schema)
	if err = errors.Join(faults, err); err != nil {
		return nil, err
	}
	s := &Scheduler{
		pool: pg.Committed(pool), schema: schema, sender: sender, options: o, log: o.Logger, lockKey: lockKey(schema),
		due: run.NewNudge(), ready: run.NewNudge(), pace: pace{first: 5 * time.Second, most: time.Minute},
	}
	s.outage = pg.NewOutage(s.log)
	s.calm = s.outage.Logger(s.log)
	if s.sql, err = pg.Load(statements, schema); err != nil {
		return nil, err
	}
	if s.Store, err = NewStore(pool, StoreOptions{Schema: o.Schema, Codec: o.Codec}); err != nil {
		return nil, err
	}
	s.guards.noLease, s.guards.noLock = unguard.Lease.Load(), unguard.Lock.Load()
	if s.leases, err = lease.New(schema); err != nil {
		return nil, err
	}
	kept := o.lease()
	kept.Logger = s.calm
	s.keeper, err = lease.NewKeeper(pool, s.leases, lease.Job{Name: LeaseName, Run: s.lead}, kept)
	return s, err
}

// lockKey is that of the advisory lock of a cycle. Such locks are shared by all programs of a database, so that the key
// is made from a text that says what it is for, and never changes.
func lockKey(schema pg.Schema) int64 {
	h := fnv.New64a()
	h.Write([]byte("edda evaluate " + schema.Name()))
	return int64(h.Sum64()) //nolint:gosec // the bits are the key
}

// Name is "scheduler", for a Host.
func (s *Scheduler) Name() string { return LeaseName }

// Connections is how many connections Run opens beside those of the pool: one for the lease and for each Singleton, and
// one that listens.
func (s *Scheduler) Connections() int {
	if s.options.PollOnly {
		return 0 // what stands between is a pooler, whose connections are not ours to count
	}
	return 2 + s.singletons.connections()
}

// Check tells whether Run could work: the tables are there, this role may use them, and the pool has a connection for
// each of MaxConcurrentDispatch and one more.
func (s *Scheduler) Check(ctx context.Context) error {
	if most, want := int(s.pool.Config().MaxConns), s.options.MaxConcurrentDispatch+1; most < want {
		return fmt.Errorf("check scheduler: the pool has %d connections, and %d are wanted: lower "+
			"MaxConcurrentDispatch, or raise MaxConns", most, want)
	}
	_, err := s.pool.Exec(ctx, s.sql.Get("probe"))
	switch pg.ClassOf(err) {
	case pg.Unprepared:
		return fmt.Errorf("check scheduler: schema %q is not migrated, run edda migrate: %w", s.schema.Name(), err)
	case pg.Denied:
		return fmt.Errorf("check scheduler: this role may not use the tables, see docs/operate/roles.md: %w", err)
	}
	if err != nil {
		return fmt.Errorf("check scheduler: %w", pg.ExplainPooler(err))
	}
	if s.options.PollOnly {
		return nil
	}
	shared, err := pg.SharesSessions(ctx, s.pool.Config())
	if err != nil {
		return fmt.Errorf("check scheduler: look what stands before Postgres: %w", pg.ExplainPooler(err))
	}
	if shared {
		return errPooler
	}
	return nil
}

var errPooler = errors.New("check scheduler: a pooler in transaction mode stands before Postgres, where LISTEN " +
	"does not work: set scheduler.Options.PollOnly")

// ErrRunning: Run was called while another Run of the Scheduler goes on.
var ErrRunning = errors.New("the scheduler is already running")

// Run brings what was declared into the database, and then evaluates, dispatches, reconciles and cleans up until ctx
// ends. Then it returns nil, after the last transaction. A database that is away is waited for. It returns an error
// when it cannot go on: a declaration that contradicts the database, a right that is missing, a schema that is not
// migrated.
func (s *Scheduler) Run(ctx context.Context) error {
	if !s.running.TryLock() {
		return ErrRunning
	}
	defer s.running.Unlock()
	if err := s.synchronise(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("run scheduler: %w", err)
	}
	group := run.NewGroup(ctx)
	s.singletons.start(group)
	group.Go(s.dispatch)
	group.Go(s.clean)
	if !s.options.PollOnly {
		group.Go(s.listen)
	}
	if s.guards.noLease {
		group.Go(func(ctx context.Context) error { return s.lead(ctx, noTerm) })
	} else {
		group.Go(s.keeper.Run)
	}
	return group.Wait()
}

// lead is what the holder of the lease does, in its term. The Keeper releases the lease after lead has returned.
func (s *Scheduler) lead(ctx context.Context, t lease.Term) error {
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error { return s.evaluate(ctx, t) })
	group.Go(func(ctx context.Context) error { return s.reconcile(ctx, t) })
	return group.Wait()
}

// synchronise tries until it works, or will never.
func (s *Scheduler) synchronise(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		changes, err := s.Sync(ctx, s.options.Owner, s.options.Groups, s.declared)
		if err == nil && !changes.None() {
			s.log.Info("edda: manifests declared", "owner", s.options.Owner, "created", len(changes.Created), "changed",
				len(changes.Changed), "orphaned", len(changes.Orphaned))
		}
		if err == nil || !passing(err) {
			return err
		}
		s.calm.Warn("edda: the manifests were not brought into the database yet", "error", err)
		if err := run.Sleep(ctx, retry.NextBackOff()); err != nil {
			return err
		}
	}
}

// passing tells of an error of the database that may be gone when it is tried again, and says nothing about what was
// tried.
func passing(err error) bool {
	switch pg.ClassOf(err) {
	case pg.Race, pg.Busy, pg.Cancelled, pg.IdleKilled, pg.Lost, pg.ReadOnly, pg.Exhausted:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// limits end a transaction whose server hangs.
type limits struct{ statement, lock, idle string }

var (
	cycleLimits    = limits{statement: "10s", lock: "2s", idle: "10s"}
	dispatchLimits = limits{statement: "30s", lock: "2s", idle: "60s"} // a Sender may take its time
)

// queueOpen queues what each transaction of the loops begins with.
func (s *Scheduler) queueOpen(b *pgx.Batch, l limits) {
	b.Queue(s.sql.Get("open"), l.statement, l.lock, l.idle)
}

// inTx runs do in a transaction with cycleLimits. With a term it commits only while that is the lease's last.
func (s *Scheduler) inTx(ctx context.Context, t lease.Term, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		s.queueOpen(b, cycleLimits)
		if t.Epoch != 0 {
			s.leases.QueueGuard(b, t)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return lease.Fenced(err)
		}
		return do(tx)
	})
}
