package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EndpointOptions of an endpoint. Every zero is a default, and a negative number an error.
type EndpointOptions struct {
	Concurrency int           // workers, each with a connection while it works; 0 is one more than max(2, CPUs), cut to the pool's MaxConns
	BatchMax    int           // messages in one transaction; 0 is 500, or 32 with a HandleTx; at most 5,000, or 60 with a HandleTx
	BatchBytes  int           // bodies in memory at a time; 0 is 4 MiB
	Budget      time.Duration // how long a batch starts steps; 0 is 50 ms, at most 5 s
	StepTimeout time.Duration // of one handler's context; 0 is 5 s, at most 5 min
	Drain       time.Duration // how long Run lets handlers finish after its context ended; 0 is 30 s
	Poll        time.Duration // how often the queue is looked at without a wake-up; 0 is 1 s
	UnknownFor  time.Duration // how long a message of a kind nobody knows is kept waiting; 0 is 10 min
	Conflicts   int           // saves a message may lose before that counts as a failure; 0 is 10

	Policy recoverability.Policy // nil is recoverability.Default
}

const (
	mostBatch    = 5000
	mostTxBatch  = 60 // savepoints of one transaction; from 64 on Postgres spills them
	idleInTx     = 2  // idle_in_transaction_session_timeout is StepTimeout times this
	mostWorkers  = 10_000
	mostBytes    = 256 << 20 // Postgres takes no parameter of a gigabyte
	standardTx   = 32
	standardRows = 500
)

// Endpoint is a named queue and the handlers that consume it.
type Endpoint struct {
	bus      *Bus
	name     string
	options  EndpointOptions
	handlers *handlers
	planner  [6]string // the planner settings of a session, given back to a user's handler

	running sync.Mutex // held by Run
	queue   *queue
	pump    *pump
	memory  *memory
}

// NewEndpoint checks everything that needs no database, and reports every fault at once. Run checks the rest
// before the first message.
func NewEndpoint(b *Bus, name string, o EndpointOptions, parts ...Part) (*Endpoint, error) {
	if b == nil {
		return nil, fmt.Errorf("endpoint %q: the bus is nil", name)
	}
	h, err := collect(parts)
	if nameErr := saga.CheckName(name); nameErr != nil {
		err = errors.Join(nameErr, err)
	}
	o, optionErr := o.withDefaults(h.hasTx, int(b.pool.Config().MaxConns))
	if err = errors.Join(err, optionErr); err != nil {
		return nil, fmt.Errorf("endpoint %.80q: %w", name, err)
	}
	return &Endpoint{bus: b, name: name, options: o, handlers: h, memory: newMemory()}, nil
}

func (o EndpointOptions) withDefaults(hasTx bool, poolSize int) (EndpointOptions, error) {
	var faults []error
	between := func(name string, value, low, high int64) {
		if value < low || value > high {
			faults = append(faults, fmt.Errorf("%s is %d, want %d to %d (0 is the default)", name, value, low, high))
		}
	}
	batch, rows := int64(mostBatch), standardRows
	if hasTx {
		batch, rows = mostTxBatch, standardTx
	}
	if o.Concurrency > poolSize {
		faults = append(faults, fmt.Errorf("Concurrency is %d, and the pool has %d connections: raise the pool's MaxConns (pool_max_conns) or lower it", o.Concurrency, poolSize))
	}
	between("Concurrency", int64(o.Concurrency), 0, mostWorkers)
	between("BatchMax", int64(o.BatchMax), 0, batch)
	between("BatchBytes", int64(o.BatchBytes), 0, mostBytes)
	between("Conflicts", int64(o.Conflicts), 0, math.MaxInt32)
	between("Budget (ns)", int64(o.Budget), 0, int64(5*time.Second))
	between("StepTimeout (ns)", int64(o.StepTimeout), 0, int64(5*time.Minute))
	between("Drain (ns)", int64(o.Drain), 0, int64(24*time.Hour))
	between("Poll (ns)", int64(o.Poll), 0, int64(time.Hour))
	between("UnknownFor (ns)", int64(o.UnknownFor), 0, int64(365*24*time.Hour))

	setDefault(&o.Concurrency, min(max(2, runtime.NumCPU())+1, poolSize)) // one waits for the disk, see docs/decisions/0009
	setDefault(&o.BatchMax, rows)
	setDefault(&o.BatchBytes, 4<<20)
	setDefault(&o.Budget, 50*time.Millisecond)
	setDefault(&o.StepTimeout, 5*time.Second)
	setDefault(&o.Drain, 30*time.Second)
	setDefault(&o.Poll, time.Second)
	setDefault(&o.UnknownFor, 10*time.Minute)
	setDefault(&o.Conflicts, 10)
	return o, errors.Join(faults...)
}

func setDefault[N int | time.Duration](value *N, standard N) {
	if *value == 0 {
		*value = standard
	}
}

// Name is the endpoint's name.
func (e *Endpoint) Name() string { return e.name }

// Install creates the endpoint's queue and subscribes it to its kinds. It needs the right to create tables, and
// does nothing when that was done before. When it returns, every event published from then on reaches the queue.
func (e *Endpoint) Install(ctx context.Context) error {
	if _, err := e.bus.pool.Exec(ctx, e.bus.sql.Get("create_queue"), e.name); err != nil {
		return fmt.Errorf("install endpoint %s: %w", e.name, explain(err))
	}
	return e.subscribe(ctx)
}

// Run consumes the queue until ctx ends. Then it takes nothing more, lets handlers finish for Drain, and
// cancels those that did not. It returns nil after a clean drain, ErrDrain when it had to cancel, and
// another error when it could not start or cannot go on: migrations.ErrNotMigrated, migrations.ErrTooNew,
// ErrNotInstalled, or ErrRunning, for there is one Run at a time. It may be called again afterwards.
func (e *Endpoint) Run(ctx context.Context) error {
	if !e.running.TryLock() {
		return fmt.Errorf("run endpoint %s: %w", e.name, ErrRunning)
	}
	defer e.running.Unlock()
	if err := e.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("run endpoint %s: %w", e.name, err)
	}
	pool, err := e.openPool(ctx)
	if err != nil {
		return fmt.Errorf("run endpoint %s: %w", e.name, err)
	}
	defer pool.Close()
	if err := e.runWorkers(ctx, pool); err != nil {
		return fmt.Errorf("run endpoint %s: %w", e.name, err)
	}
	return nil
}

// start checks what only the database knows.
func (e *Endpoint) start(ctx context.Context) error {
	b := e.bus
	if err := migrations.Check(ctx, b.pool, b.schema); err != nil {
		return err
	}
	var id int
	err := b.pool.QueryRow(ctx, b.sql.Get("find_queue"), e.name).Scan(&id)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && b.autoInstall:
		err = b.pool.QueryRow(ctx, b.sql.Get("create_queue"), e.name).Scan(&id)
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: call Endpoint.Install, or set bus.Options.AutoInstall", ErrNotInstalled)
	}
	if err != nil {
		return fmt.Errorf("find its queue: %w", explain(err))
	}
	if err := e.subscribe(ctx); err != nil {
		return err
	}
	known, err := b.routes.reload(ctx, b.pool)
	if err != nil {
		return err
	}
	e.queue = known.byID[id]
	p := &e.planner
	err = b.pool.QueryRow(ctx, b.sql.Get("planner")).Scan(&p[0], &p[1], &p[2], &p[3], &p[4], &p[5])
	if err != nil {
		return fmt.Errorf("read the planner's settings: %w", err)
	}
	return nil
}

// subscribe adds the kinds that are not subscribed yet. It waits for every transaction that is publishing, so
// that what they publish is either before the subscription or seen by it.
func (e *Endpoint) subscribe(ctx context.Context) error {
	b, kinds := e.bus, e.handlers.subscribed
	var (
		id      int
		missing int
	)
	if err := b.pool.QueryRow(ctx, b.sql.Get("find_queue"), e.name).Scan(&id); err != nil {
		return fmt.Errorf("find its queue: %w", explain(err))
	}
	if err := b.pool.QueryRow(ctx, b.sql.Get("missing_subscriptions"), id, kinds).Scan(&missing); err != nil {
		return fmt.Errorf("read its subscriptions: %w", explain(err))
	}
	if missing == 0 {
		return nil
	}
	for {
		err := e.trySubscribe(ctx, id, kinds)
		if pg.ClassOf(err) != pg.Busy {
			b.routes.forget()
			if err != nil {
				return fmt.Errorf("subscribe: %w", explain(err))
			}
			return nil
		}
		// Somebody is publishing in a long transaction. Others would queue up behind a lock request that
		// waits, so it waits in short pieces.
		if err := run.Sleep(ctx, run.Jitter(100*time.Millisecond)); err != nil {
			return fmt.Errorf("subscribe: a transaction that publishes is still open: %w", err)
		}
	}
}

func (e *Endpoint) trySubscribe(ctx context.Context, id int, kinds []string) error {
	return pgx.BeginFunc(ctx, e.bus.pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(e.bus.sql.Get("lock_timeout"), "50ms")
		batch.Queue(e.bus.sql.Get("lock_subscriptions"))
		batch.Queue(e.bus.sql.Get("subscribe"), id, kinds)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// Unsubscribe ends the delivery of kinds to the endpoint: commands find no route to it, events no copy. What is
// in the queue stays. A later Run of an endpoint that handles a kind subscribes it again.
func (e *Endpoint) Unsubscribe(ctx context.Context, kinds ...string) error {
	b := e.bus
	var id int
	if err := b.pool.QueryRow(ctx, b.sql.Get("find_queue"), e.name).Scan(&id); err != nil {
		return fmt.Errorf("unsubscribe endpoint %s: %w", e.name, explain(err))
	}
	defer b.routes.forget()
	if _, err := b.pool.Exec(ctx, b.sql.Get("unsubscribe"), id, kinds); err != nil {
		return fmt.Errorf("unsubscribe endpoint %s: %w", e.name, explain(err))
	}
	return nil
}

// openPool makes the workers' own pool: a handler that uses the user's pool must not wait for the very workers
// that fill it.
func (e *Endpoint) openPool(ctx context.Context) (*pgxpool.Pool, error) {
	config := e.bus.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(e.options.Concurrency), 0, 0
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // a lost connection loses a batch, which is free
	theirs := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		pg.RegisterArrays(conn.TypeMap())
		if e.bus.wakeup != PollOnly {
			// Not a startup parameter: a server on a system that cannot check refuses it, and need not have it.
			_, _ = conn.Exec(ctx, e.bus.sql.Get("check_client"))
		}
		if theirs != nil {
			return theirs(ctx, conn)
		}
		return nil
	}
	if e.bus.wakeup != PollOnly { // PgBouncer refuses parameters it does not know
		e.sessionTimeouts(config.ConnConfig.RuntimeParams)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// sessionTimeouts bound how long a client that has vanished keeps its batch locked.
func (e *Endpoint) sessionTimeouts(params map[string]string) {
	for name, value := range map[string]string{
		"idle_in_transaction_session_timeout": fmt.Sprint((idleInTx * e.options.StepTimeout).Milliseconds()),
		"tcp_user_timeout":                    "10000",
		"tcp_keepalives_idle":                 "5",
		"tcp_keepalives_interval":             "2",
		"tcp_keepalives_count":                "3",
	} {
		if _, set := params[name]; !set {
			params[name] = value
		}
	}
}

func (e *Endpoint) runWorkers(ctx context.Context, pool *pgxpool.Pool) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	e.pump = newPump(e.options)
	e.bus.hub.attach(e.queue.id, e.pump)
	defer e.bus.hub.detach(e.queue.id, e.pump)

	side := run.NewGroup(ctx)
	side.Go(e.pump.tick)
	side.Go(e.bus.clean)
	if e.bus.wakeup == Notify {
		side.Go(e.bus.listen)
	}
	workers := run.NewGroup(ctx)
	for range e.options.Concurrency {
		workers.Go(func(taking context.Context) error { return newWorker(e, pool).run(taking, work) })
	}
	side.Go(func(context.Context) error { e.drain(ctx, work, cancel); return nil })
	err := workers.Wait()
	if err == nil && errors.Is(context.Cause(work), ErrDrain) {
		err = ErrDrain
	}
	cancel(nil)
	side.Stop()
	return errors.Join(err, side.Wait())
}

// drain cancels the handlers when they have not ended in time after ctx has. It returns when work is over.
func (e *Endpoint) drain(ctx, work context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-work.Done():
		return
	case <-ctx.Done():
	}
	if run.Sleep(work, e.options.Drain) == nil {
		cancel(ErrDrain)
	}
}

// kinds lists what the endpoint consumes, for error texts.
func (e *Endpoint) kinds() []string {
	var kinds []string
	for kind := range e.handlers.consumers {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}
