package limit

import (
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	slots "github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrFull is the error of TryAcquire when no slot is free, or when other callers wait for one.
var ErrFull = errors.New("no slot is free")

// Max is the largest limit.
const Max = slots.Most

// Options are the options of a Limiter. The zero value of every field is a default.
type Options struct {
	Schema string // "" is "edda"

	// Lease is how long a slot lasts without a renewal: 1 s to 1 h; 0 is 30 s. It is renewed four times in a Lease.
	// When a process dies, its slots are free after a Lease.
	Lease time.Duration

	// Holder is the name of this process in the table slot. "" is $EDDA_HOLDER, else $HOSTNAME, else the name of the
	// host, else a UUID. A random part is always added.
	Holder string

	// PollOnly does without LISTEN, which does not work through PgBouncer in transaction mode. A caller that waits then
	// checks for a free slot once a second, and is not notified of one.
	PollOnly bool

	Logger *slog.Logger // nil is slog.Default(). A slot that is lost is logged at Warn
}

const standardLease = 30 * time.Second

// Limiter grants slots of named limits. It is safe for concurrent use, and one Limiter is enough for a process. It uses
// the pool for requests. In addition to the pool it uses one connection that listens while callers wait, and one that
// renews all slots while slots are held for long.
type Limiter struct {
	pool    *pg.Pool
	store   *slots.Store
	options Options
	holder  string
	calls   atomic.Int64 // numbers the callers, whose names must differ
	pruned  atomic.Int64 // when places in lines were deleted last, in seconds
	queues  queues

	hearing *run.Shared // the loop that listens, while callers wait
	keeping *run.Shared // the loop that renews, while slots are held
	line    *lease.Line // of the loop that renews: it must not wait until work gives a connection back

	mu       sync.Mutex         // guards the fields below
	held     map[*Slot]struct{} // to be renewed
	declared map[string]int     // this process's declarations
}

// New makes a Limiter. It does no I/O, and returns an error that lists every fault: a nil pool, an invalid schema or
// holder, a Lease out of bounds.
func New(pool *pgxpool.Pool, o Options) (*Limiter, error) {
	var faults option.Faults
	if pool == nil {
		faults.Add(errors.New("the pool is nil"))
	}
	faults.Duration("Lease", &o.Lease, standardLease, time.Second, time.Hour)
	o.Logger = handlers.Logger(o.Logger)
	schema, err := pg.ParseSchema(o.Schema)
	faults.Add(err)
	holder, err := lease.Holder(o.Holder)
	faults.Add(err)
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("new limiter: %w", err)
	}
	l := &Limiter{
		pool: pg.Committed(pool), store: slots.New(schema), options: o, holder: lease.Identity(holder),
		queues: queues{of: map[string]*queue{}}, line: lease.NewLine(pool),
		held: map[*Slot]struct{}{}, declared: map[string]int{},
	}
	l.keeping = run.NewShared(l.keep)
	listener := lease.Listener{Pool: pool, Channel: schema.Channel(), Heard: l.queues.hear, Logger: o.Logger}
	l.hearing = run.NewShared(listener.Run)
	if o.PollOnly {
		l.hearing = run.NewShared()
	}
	return l, nil
}

// Do waits for a slot of the limit, calls work, and releases the slot when work has returned, or panicked. The context
// of work ends with ctx, and with the cause ErrLost when the slot is lost. Do returns the error of Acquire, of work, or
// of Release, or both of the last two: with ErrLost, another caller may have had the slot before work returned. Do is
// safe for concurrent use.
func (l *Limiter) Do(ctx context.Context, name string, n int, work func(ctx context.Context, s *Slot) error) (
	err error) {
	s, err := l.Acquire(ctx, name, n)
	if err != nil {
		return err
	}
	defer func() { //nolint:contextcheck // what ends ctx must not keep the slot
		if released := s.Release(); released != nil {
			err = errors.Join(err, released)
		}
	}()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.life, func() { end(ErrLost) })() //nolint:contextcheck // ctx ends with the slot, too
	return work(ctx, s)
}

// Acquire waits until one of the n slots of the limit is free and the callers that came before have had their turn. The
// name is 1 to 63 of a-z, 0-9 and _ . -, beginning with a letter, and n is 1 to 10,000. A process declares a number at
// its first call, and again when it passes a different number: the number that was declared last, by any process, is
// the limit, unless an operator has set one. Lowering a limit waits for transactions with a Guard by slots above n.
//
// The slot is the caller's until Release. It outlives ctx, which bounds only the wait. Errors: the cause of ctx if ctx
// ends first; an error that names the argument that is out of bounds; an error of the database. Acquire is safe for
// concurrent use.
func (l *Limiter) Acquire(ctx context.Context, name string, n int) (*Slot, error) {
	full, err := l.declare(ctx, name, n)
	if err != nil {
		return nil, err
	}
	c := l.queues.join(full, l.nextHolder)
	defer l.queues.leave(c)
	s, err := l.wait(ctx, c)
	return s, l.failed(ctx, name, err)
}

// failed adds the name of the limit to err. If ctx has ended, it uses the cause instead, because err is a consequence
// of it.
func (l *Limiter) failed(ctx context.Context, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = pgerr.Explain(err)
	}
	return fmt.Errorf("acquire a slot of limit %s: %w", name, err)
}

// TryAcquire is Acquire without the wait: it returns ErrFull when no slot is free, or when other callers wait for one.
func (l *Limiter) TryAcquire(ctx context.Context, name string, n int) (*Slot, error) {
	full, err := l.declare(ctx, name, n)
	if err != nil {
		return nil, err
	}
	c := &caller{limit: full, holder: l.nextHolder()}
	s, err := l.ask(ctx, c, time.Microsecond)
	if s == nil && err == nil {
		l.withdraw(ctx, c)
		err = ErrFull
	}
	return s, l.failed(ctx, name, err)
}

// nextHolder returns a name that no other caller has.
func (l *Limiter) nextHolder() string {
	return l.holder + "/" + strconv.FormatInt(l.calls.Add(1), 10)
}

// mostDeclared bounds the number of declared limits that a process remembers. Programs may have a limit for each of
// their customers.
const mostDeclared = 10_000

// declare makes n the limit, once in a process, and returns the limit's name in the tables.
func (l *Limiter) declare(ctx context.Context, name string, n int) (full string, err error) {
	if err := saga.CheckName(name); err != nil {
		return "", fmt.Errorf("limit %.80q: %w", name, err)
	}
	if n < 1 || n > Max {
		return "", fmt.Errorf("limit %s: n is %d, want 1 to %d", name, n, Max)
	}
	full = slots.NamedPrefix + name
	l.mu.Lock()
	known := l.declared[full] == n
	l.mu.Unlock()
	if known {
		return full, nil
	}
	if _, err := l.store.Declare(ctx, l.pool.Writing(), full, n); err != nil {
		return "", l.failed(ctx, name, fmt.Errorf("declare it: %w", err))
	}
	l.prune(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.declared) >= mostDeclared {
		clear(l.declared)
	}
	l.declared[full] = n
	return full, nil
}

const (
	pruneEvery = time.Hour // at most, by a process that declares limits
	mostPruned = 1000
)

// prune deletes places in lines whose callers have died. A bus does that too, but a program may run without a bus.
func (l *Limiter) prune(ctx context.Context) {
	last := l.pruned.Load()
	if now := time.Now().Unix(); now-last < int64(pruneEvery/time.Second) || !l.pruned.CompareAndSwap(last, now) {
		return
	}
	if _, err := l.store.Prune(ctx, l.pool, pruneEvery, mostPruned); err != nil {
		l.options.Logger.Debug("edda: tickets of dead processes were not deleted", "error", err) // deleted later
	}
}

// forget makes the next call declare the limit again, because the schema has been created anew.
func (l *Limiter) forget(full string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.declared, full)
}
