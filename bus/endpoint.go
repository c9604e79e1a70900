package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/batch"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EndpointOptions are the options of an endpoint. A zero field is a default; a negative number is an error.
type EndpointOptions struct {
	// Concurrency is the number of batches that run at a time, each with a connection while it works; 0 is one more
	// than max(2, CPUs), cut to the pool's MaxConns. In a leased endpoint it is the number of handlers that run at a
	// time, which need no connection; 0 is 32. At most 10,000.
	Concurrency int
	// BatchMax is the maximum number of messages in one transaction; 0 is 500, or 32 with a HandleTx; at most 5,000,
	// or 60 with a HandleTx.
	BatchMax int
	// BatchBytes is the maximum size of the kinds, headers and bodies that a batch, or one claim of a leased
	// endpoint, reads; 0 is 4 MiB, at most 256 MiB. A larger message is read alone.
	BatchBytes int
	BatchTime  time.Duration // how long a batch starts steps; 0 is 50 ms, at most 5 s
	// StepTimeout bounds one handler's context; 0 is 5 s, at most 5 min; in a leased endpoint 0 is 10 min, at most 7
	// days. A handler that has not returned 5 s later has failed, and its worker continues without it.
	StepTimeout time.Duration
	// Ordered, of a leased endpoint, determines whether it handles the messages of one key in order, see KeyedBy.
	Ordered Ordering
	// Lease, of a leased endpoint, is how long a message is claimed at a time; 0 is the default lease of 15 s, 1 s to
	// 1 h.
	Lease time.Duration
	// DirectOnly subscribes the queue to no kind: it receives only messages that name it (saga.To), answers and
	// timeouts. See docs/guide/partitions.md.
	DirectOnly bool
	Drain      time.Duration // how long Run lets handlers finish after its context ended; 0 is 30 s, at most 24 h
	Poll       time.Duration // the longest time between takes without a wake-up; 0 is 1 s, at most 1 h
	// UnknownKindTimeout is how long the endpoint keeps a message of an unknown kind, or with a header of a newer
	// program, before the message becomes a dead letter; 0 is 10 min, at most 365 days.
	UnknownKindTimeout time.Duration
	MaxConflicts       int // saves a message may lose before that counts as a failure; 0 is 10
	// MaxCrashes is the number of processes that crash with a message before it becomes a dead letter; 0 is 4, at
	// least 3. See docs/operate/crashes.md.
	MaxCrashes int

	// ClusterConcurrency is the number of batches of the endpoint, or of handlers of a leased endpoint, that run at a
	// time in all processes together; at most 10,000. The first Check, Install or Run of a process declares it: a
	// program with a different number changes the limit, unless an operator has set one with operate.Limits.Set, "edda
	// limit set" or the SQL function set_limit, which stays until "edda limit reset". Check then logs a warning. 0
	// declares nothing, and removes no limit. It must be 0 in an ordered endpoint. See docs/operate/limits.md.
	ClusterConcurrency int

	// History determines which history is kept of the messages of the endpoint, unless an operator has set it with
	// "edda history set". Fields that it leaves open are taken from Options.History.
	History history.Options

	Policy recoverability.Policy // nil is recoverability.Default

	// ConflictPolicy decides about a message that has lost more saves than MaxConflicts, each time it loses one more.
	// Its decisions cost no attempt, so it can keep a message out of the dead letters indefinitely. If it is nil, the
	// message has failed: Policy decides, and the count of lost saves begins anew. See recoverability.CountConflicts.
	ConflictPolicy recoverability.Policy

	// After BreakerFailures failed attempts in a row, the last at least BreakerPause after the first, this process
	// tries one message at a time, with BreakerPause after each failure, until one is handled. See
	// docs/operate/recoverability.md.
	BreakerFailures int           // 0 is 100; math.MaxInt32 is never
	BreakerPause    time.Duration // 0 is 1 s, at most 1 h
}

const (
	mostBatch    = 5000
	idleInTx     = 2 // idle_in_transaction_session_timeout is StepTimeout times this
	mostWorkers  = 10_000
	mostBytes    = 256 << 20 // Postgres takes no parameter of a gigabyte
	standardTx   = 32
	standardRows = 500

	standardHandlers = 32 // of a leased endpoint: a load that a small service on the other side can bear
	leasedConns      = 3  // one claims, one finishes, one extends leases
)

// Endpoint is a named queue and the handlers that consume it.
type Endpoint struct {
	bus      *Bus
	name     string
	options  EndpointOptions
	handlers *handlers.Table

	running  sync.Mutex       // held by Run
	fence    func(*pgx.Batch) // of a partition: the check of the lease in every batch; set while Run does not run
	strategy batch.Strategy   // decides the fate of decoded messages

	resolved
	alarm *wake.Alarm // of Run
	// halt keeps batches from beginning until the settings have been read.
	halt     func()
	permits  permits // of the limit
	settings *workerSettings
	breaker  *contention.Breaker
	memory   *contention.Memory
	counts   *outcome.Counts

	recipient *message.Recipient // of Run
	held      held               // by Run
}

// NewEndpoint makes an endpoint called name. It checks everything that needs no database, and returns an error that
// lists every fault. Run checks the rest before its first message. With the codec saga.JSON a message with a field
// that JSON would not carry is a fault: an unexported field, or a func, a channel or an interface with methods,
// unless its type encodes and decodes itself. The tag json:"-" leaves a field out on purpose.
func NewEndpoint(b *Bus, name string, o EndpointOptions, parts ...Part) (*Endpoint, error) {
	if b == nil {
		return nil, fmt.Errorf("endpoint %q: the bus is nil", name)
	}
	h, o, err := ResolveEndpoint(name, o, int(b.pool.Config().MaxConns), b.codec, parts...)
	if err != nil {
		return nil, err
	}
	return b.newEndpoint(name, o, h), nil
}

// ResolveEndpoint makes the checks of NewEndpoint. It returns the handlers, and the options with their defaults.
// connections bounds Concurrency; codec determines which messages can be carried. It is for packages of Edda that run
// endpoints without this package's engines, such as package memory. endpoints elsewhere, such as package memory.
func ResolveEndpoint(
	name string, o EndpointOptions, connections int, codec saga.Codec, parts ...Part,
) (*handlers.Table, EndpointOptions, error) {
	h, err := collect(parts, o.Ordered, codec)
	if nameErr := saga.CheckName(name); nameErr != nil {
		err = errors.Join(nameErr, err)
	}
	o, optionErr := o.withDefaults(h, connections)
	if err = errors.Join(err, checkUnpartitioned(h), optionErr); err != nil {
		return nil, o, fmt.Errorf("endpoint %.80q: %w", name, err)
	}
	if o.DirectOnly {
		h = h.Unsubscribed()
	}
	return h, o, nil
}

func (b *Bus) newEndpoint(name string, o EndpointOptions, h *handlers.Table) *Endpoint {
	h = within(b.hooks.middleware, name, h)
	return &Endpoint{
		bus: b, name: name, options: o, handlers: h, strategy: batch.Handling{}, memory: contention.NewMemory(),
		counts:  outcome.NewCounts(),
		held:    held{calls: &run.Calls{}},
		permits: permits{changed: run.NewNudge()},
	}
}

func (o EndpointOptions) withDefaults(h *handlers.Table, poolSize int) (EndpointOptions, error) {
	var f option.Faults
	most, rows := mostBatch, standardRows
	step, longestStep := 5*time.Second, 5*time.Minute
	workers := min(max(2, runtime.NumCPU())+1, poolSize) // one waits for the disk, see docs/internals/decisions/0009
	switch {
	case h.Leased:
		step, longestStep, workers = 10*time.Minute, 7*24*time.Hour, standardHandlers
	case h.HasTx:
		most, rows = batch.MostTx, standardTx
	}
	if o.Concurrency > poolSize && !h.Leased {
		f.Add(fmt.Errorf("Concurrency is %d, and the pool has %d connections: raise the pool's "+
			"MaxConns (pool_max_conns) or lower Concurrency", o.Concurrency, poolSize))
	}
	if o.Ordered != Unordered && o.ClusterConcurrency > 0 {
		f.Add(errors.New("ClusterConcurrency must be 0 in an Ordered endpoint, which has no limit: use " +
			"Concurrency, or an endpoint without order"))
	}
	f.Add(o.History.Check())
	f.Int("Concurrency", &o.Concurrency, workers, 0, mostWorkers)
	f.Int("ClusterConcurrency", &o.ClusterConcurrency, 0, 0, limit.Most)
	f.Int("BatchMax", &o.BatchMax, rows, 0, most)
	f.Int("BatchBytes", &o.BatchBytes, 4<<20, 0, mostBytes)
	f.Int("MaxConflicts", &o.MaxConflicts, 10, 0, math.MaxInt32)
	f.Int("MaxCrashes", &o.MaxCrashes, 4, batch.FewestCrashes, math.MaxInt32)
	f.Int("BreakerFailures", &o.BreakerFailures, 100, 0, math.MaxInt32)
	f.Duration("Lease", &o.Lease, lease.Default, time.Second, time.Hour)
	f.Duration("BatchTime", &o.BatchTime, 50*time.Millisecond, 0, 5*time.Second)
	f.Duration("StepTimeout", &o.StepTimeout, step, 0, longestStep)
	f.Duration("Drain", &o.Drain, 30*time.Second, 0, 24*time.Hour)
	f.Duration("Poll", &o.Poll, time.Second, 0, time.Hour)
	f.Duration("BreakerPause", &o.BreakerPause, time.Second, 0, time.Hour)
	f.Duration("UnknownKindTimeout", &o.UnknownKindTimeout, 10*time.Minute, 0, 365*24*time.Hour)
	return o, f.Err()
}

// Name returns the endpoint's name.
func (e *Endpoint) Name() string { return e.name }

// Run consumes the queue until ctx ends. Then it takes no more messages, lets handlers finish for Drain, and cancels
// the remaining handlers. It does not wait for a handler that has not returned two seconds later: it rolls back the
// handler's transaction, and names the message in the error. It returns nil after a clean drain, ErrDrain if it had
// to cancel a handler, and a different error if it could not start or cannot continue: migrations.ErrNotMigrated,
// migrations.ErrTooNew, ErrNotInstalled, ErrPooler, ErrRunning (only one Run at a time), or an error of a database
// that is away at the start. If the database goes away later, Run waits for it. Run may be called again after it has
// returned.
func (e *Endpoint) Run(ctx context.Context) error {
	if !e.running.TryLock() {
		return fmt.Errorf("run endpoint %s: %w", e.name, ErrRunning)
	}
	ends := run.Ends{Name: e.name, Drain: e.options.Drain, Log: e.bus.log, Calls: e.held.calls, Leave: e.held.giveUp,
		Within: e.options.StepTimeout + run.Patience}
	return named("run endpoint "+e.name, ends.Run(ctx, e.runToEnd))
}

func named(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// runToEnd is the body of Run. If a handler does not return, runToEnd outlives Run, and a second Run is refused.
func (e *Endpoint) runToEnd(ctx context.Context) error {
	defer e.running.Unlock()
	found, err := e.check(ctx)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	e.resolved = found
	pool, err := e.openPool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	e.settings = e.newSettings(e.mostWorkers(pool))
	if err := e.settings.Load(ctx); err != nil {
		return run.UnlessOver(ctx, fmt.Errorf("read its settings: %w", err))
	}
	e.breaker = contention.NewBreaker(e.options.BreakerFailures, e.options.BreakerPause)
	e.recipient = newRecipient(e)
	left := e.held.calls.Left
	if e.fence != nil {
		left = func() int { return 0 } // Partitioned counts the handlers of all its queues
	}
	leave, err := e.bus.join(ctx, e.queue.ID, left)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	defer e.held.session(leave)()
	e.bus.log.Info("edda: endpoint started", "endpoint", e.name, "concurrency", e.settings.count(e.settings.Now()))
	err = e.consume(ctx, pool)
	e.bus.log.Info("edda: endpoint stopped", "endpoint", e.name, "error", err)
	return err
}

// mostDecoding bounds the decoding of one message, with its key and its Accepts. A shorter StepTimeout, or half of a
// shorter lease, bounds it further.
const mostDecoding = 5 * time.Second

func newRecipient(e *Endpoint) *message.Recipient {
	b, o := e.bus, &e.options
	decoding := min(mostDecoding, o.StepTimeout)
	if e.handlers.Leased {
		decoding = min(decoding, o.Lease/2)
	}
	return &message.Recipient{
		Name: e.name, Queue: e.queue, Handlers: e.handlers, Memory: e.memory, Handled: &e.breaker.Handled,
		Options: message.Options{
			Calls:     e.held.calls,
			BatchTime: o.BatchTime, StepTimeout: o.StepTimeout, Decoding: decoding,
			UnknownKindTimeout: o.UnknownKindTimeout, Policy: o.Policy,
			ConflictPolicy: o.ConflictPolicy, Judges: message.NewJudges(),
		},
		Pool: b.pool, Codec: b.codec, NewID: newID, Log: b.log, Calm: b.calm, Routes: b.routes,
		Sent: b.tables.sent, Letters: b.tables.letters, Settings: b.tables.settings, Runs: b.tables.runs,
		Notifier: b.notifier, History: b.tables.history,
		Keeps: func() history.Options {
			return e.settings.Now().History.Or(o.History).Or(b.tables.history.General)
		},
		Hooks: b.hooks.Hooks,
	}
}

// Check makes the checks of Run and takes no message: it compares the schema's version, finds the queue (or installs
// it, with AutoInstall), subscribes the endpoint to its kinds, declares its limit and reads the routes. A program
// that starts several endpoints calls Check for each, so that no endpoint takes a message before all are ready.
// Errors are those of Run. Check is safe for concurrent use, also during Run.
func (e *Endpoint) Check(ctx context.Context) error {
	if _, err := e.check(ctx); err != nil {
		return fmt.Errorf("check endpoint %s: %w", e.name, err)
	}
	return nil
}

// Connections returns the bus's pool, and the number of connections that Run opens in addition to the pool's own:
// EndpointOptions.Concurrency, or three for a leased endpoint. SetConcurrency does not change that number. With
// PollOnly it is 0, because a pooler's connections are not counted.
func (e *Endpoint) Connections() (pool *pgxpool.Pool, more int) {
	if e.bus.wakeup == PollOnly {
		return e.bus.pool.Pool, 0
	}
	return e.bus.pool.Pool, e.connections()
}

// connections returns the most connections that Run needs.
func (e *Endpoint) connections() int {
	if e.handlers.Leased {
		return leasedConns
	}
	return e.options.Concurrency
}

// resolved holds the values that Run reads from the database before it takes a message.
type resolved struct {
	queue    *queue.Queue
	schemaID string
	planner  [6]string // the planner settings of a session, restored for a user's handler
}

// check checks everything that needs the database.
func (e *Endpoint) check(ctx context.Context) (resolved, error) {
	b := e.bus
	if err := version.Check(ctx, b.pool, b.schema); err != nil {
		return resolved{}, pgerr.ExplainPooler(err)
	}
	id, err := e.findQueue(ctx)
	if err != nil {
		return resolved{}, err
	}
	if err := b.routes.CheckRelay(ctx, e.name, false); err != nil {
		return resolved{}, err
	}
	if err := e.subscribe(ctx, id); err != nil {
		return resolved{}, err
	}
	if err := e.findLimit(ctx); err != nil {
		return resolved{}, err
	}
	known, err := b.routes.Reload(ctx, b.pool)
	if err != nil {
		return resolved{}, err
	}
	g := resolved{queue: known.ByID[id], schemaID: known.SchemaID}
	g.planner, err = b.look(ctx, e.workerConfig())
	return g, err
}

// mostWorkers returns the most workers that SetConcurrency may set: no more than there are connections for them.
func (e *Endpoint) mostWorkers(pool *pg.Pool) int {
	switch {
	case e.handlers.Leased:
		return mostWorkers // its handlers need no connection
	case e.fence != nil:
		return 1 // batches of a partition run one at a time, whatever SetConcurrency sets
	}
	return int(pool.Config().MaxConns)
}

// idleInTx returns how long a transaction may be idle. A leased endpoint has no transaction open while a handler runs.
func (e *Endpoint) idleInTx() time.Duration {
	if e.handlers.Leased {
		return contention.CommitTimeout
	}
	return idleInTx * e.options.StepTimeout
}
