package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Forward gives messages to the other side of a border, in order, and returns one error for each: nil if the other side
// has accepted the message. A nil slice means that it has accepted all of them. Forward runs with no transaction open.
//
// Do not forward a message after a failed one: return ErrBehind for it. If the order of the two does not matter, the
// message may be forwarded, and has its own result. saga.Permanent means that no attempt can succeed, saga.Discard that
// the message is not wanted, saga.RetryAfter sets the time to wait, at most MaxRetryDelay. After any other error the
// message is retried, for ever if no other message is accepted either. Forward may keep the deliveries.
//
// A call that panics, ends its goroutine or returns a wrong number of errors has failed as a whole, and no message is
// blamed for it. The relay forwards the same messages again, fewer at a time, until one of them fails alone. The
// context of a call ends after ten times Drain. A call that has not returned 5 s later has failed too: its messages
// may reach the other side late and out of order.
type Forward func(ctx context.Context, messages []*saga.Delivery) []error

// Relay carries the messages of a queue across the border of this database, in order, each at least once and with its
// id. The queue is like that of an endpoint: saga.To("shop.events") names the relay shop.events, and a message is
// written by the transaction that sends it. Methods are safe for concurrent use.
//
// One process at a time relays: the holder of the lease. Others stand by. See docs/guide/outbox.md.
type Relay struct {
	border  *Border
	name    string
	kinds   []string
	options RelayOptions // with defaults
	calm    *slog.Logger // see Border.calm
	forward Forward
	keeper  *lease.Keeper
	queue   *queue.Queue // set before the keeper runs

	newer awaitedNewer // belongs to the loop of the term

	running sync.Mutex // held by Run
	ending  run.Ending
	calls   run.Calls              // of forward
	held    atomic.Pointer[func()] // ends the session of Run
}

// NewRelay implements bus.NewRelay, for the bus that made b.
func NewRelay(b *Border, name string, o RelayOptions, forward Forward, kinds ...string) (*Relay, error) {
	if b == nil {
		return nil, fmt.Errorf("relay %.80q: the bus is nil", name)
	}
	o, optionErr := o.withDefaults(b.Log)
	faults := []error{saga.CheckName(name), optionErr, checkKinds(kinds)}
	if forward == nil {
		faults = append(faults, errors.New("forward is nil"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("relay %.80q: %w", name, err)
	}
	r := &Relay{
		border: b, name: name, kinds: kinds, options: o, calm: b.Outage.Logger(o.Logger), forward: forward,
	}
	var err error
	r.keeper, err = lease.NewKeeper(b.Pool.Pool, b.Leases, lease.Job{Name: r.leaseName(), Run: r.work},
		lease.Options{Lease: o.Lease, Stop: o.Drain + stopSlack, Holder: o.Holder, Logger: r.calm})
	if err != nil {
		return nil, fmt.Errorf("relay %s: %w", name, err)
	}
	return r, nil
}

func checkKinds(kinds []string) error {
	var faults []error
	seen := map[string]bool{}
	for _, kind := range kinds {
		if err := saga.CheckName(kind); err != nil {
			faults = append(faults, fmt.Errorf("kind: %w", err))
		} else if seen[kind] {
			faults = append(faults, fmt.Errorf("kind %s is given twice", kind))
		}
		seen[kind] = true
	}
	return errors.Join(faults...)
}

// leaseName returns the name of the relay's lease. It cannot clash with an endpoint's name, which has no slash.
func (r *Relay) leaseName() string { return "relay/" + r.name }

// Name returns the name of the relay and of its queue.
func (r *Relay) Name() string { return r.name }

// Connections returns the bus's pool, and the number of connections that Run opens in addition to it: one for the
// queue and one for the lease. With PollOnly that is 0, see Endpoint.Connections.
func (r *Relay) Connections() (pool *pgxpool.Pool, more int) {
	if r.border.PollOnly {
		return r.border.Pool.Pool, 0
	}
	return r.border.Pool.Pool, 2 // reads and finishes share one
}

// Holding reports whether this process relays at the moment. It is for metrics; the answer may be out of date when it
// arrives.
func (r *Relay) Holding() bool {
	_, ok := r.keeper.Holding()
	return ok
}

// Install creates the queue and subscribes it to the relay's kinds. It needs the right to create tables, and does
// nothing if the relay is installed. Every message that is published after Install has returned reaches the relay.
func (r *Relay) Install(ctx context.Context) error {
	if err := r.border.Routes.Install(ctx, r.name, true, r.kinds); err != nil {
		return fmt.Errorf("install relay %s: %w", r.name, err)
	}
	return nil
}

// Check does the preparations of Run before its first message, and nothing else; see Endpoint.Check.
func (r *Relay) Check(ctx context.Context) error {
	if _, err := r.check(ctx); err != nil {
		return fmt.Errorf("check relay %s: %w", r.name, err)
	}
	return nil
}

// Run relays, or stands by while another process relays, until ctx ends. Then it takes no more messages, lets forward
// finish for Drain, deletes the relayed messages, and releases the lease, so that the next process can continue at
// once. It returns ErrRunning if it runs already, bus.ErrDrain if calls had to be canceled, and the other errors of
// Endpoint.Run.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.TryLock() {
		return fmt.Errorf("run relay %s: %w", r.name, ErrRunning)
	}
	ends := run.Ends{Name: r.name, Drain: r.options.Drain, Log: r.options.Logger, Calls: &r.calls, Leave: r.leave,
		Within: r.options.forwardMost() + run.Patience}
	if err := ends.Run(ctx, r.runToEnd); err != nil {
		return fmt.Errorf("run relay %s: %w", r.name, err)
	}
	return nil
}

func (r *Relay) leave() {
	if end := r.held.Load(); end != nil {
		(*end)()
	}
}

// runToEnd does the work of Run, and outlives Run if forward does not return. Then this process no longer renews the
// lease, and a further Run is refused.
func (r *Relay) runToEnd(ctx context.Context) error {
	defer r.running.Unlock()
	found, err := r.check(ctx)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	r.queue = found
	leave, err := r.border.Process.Join(ctx, r.queue.ID, r.calls.Left)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	leave = sync.OnceFunc(leave)
	r.held.Store(&leave)
	defer leave()
	r.ending.Begin(ctx)
	defer r.border.Hub.Listen(lease.WakePrefix+r.leaseName(), func(string) { r.keeper.Wake() })()
	r.options.Logger.Info("edda: relay started", "endpoint", r.name)
	defer func() { r.options.Logger.Info("edda: relay stopped", "endpoint", r.name, "error", err) }()
	group := run.NewGroup(ctx)
	group.Go(r.ending.Await)
	group.Go(r.keeper.Run)
	err = r.ending.Err(group.Wait())
	return err
}

// check compares the schema's version, creates the queue and its mark if it may, subscribes the queue and returns it.
func (r *Relay) check(ctx context.Context) (*queue.Queue, error) {
	b := r.border
	if err := version.Check(ctx, b.Pool, b.Schema); err != nil {
		return nil, err
	}
	id, err := b.Routes.FindRelay(ctx, r.name, b.AutoInstall)
	if err != nil {
		return nil, err
	}
	if err := b.Routes.Subscribe(ctx, id, r.kinds); err != nil {
		return nil, err
	}
	known, err := b.Routes.Reload(ctx, b.Pool)
	if err != nil {
		return nil, err
	}
	return known.ByID[id], b.Process.CheckPool(ctx, relayIdle)
}

const (
	relayTimeout = 30 * time.Second // of a read, and of a transaction that finishes messages
	relayIdle    = time.Minute      // the server ends a transaction that is idle for this long
	stopSlack    = 5 * time.Second  // for the work after forward
)
