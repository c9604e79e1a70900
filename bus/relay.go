package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/wake"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// Forward gives messages to the other side of a border, in their order, and returns one error for each: nil where the
// message is there, whatever became of those before it. A nil slice says that all are there. It runs with no
// transaction open.
//
// A message behind one that failed must not have been given to the other side, and has ErrBehind, unless the order of
// the two means nothing to anybody: then it may be given, and has an error or none of its own. saga.Permanent says that
// no attempt can succeed, saga.Discard that the message is not wanted, saga.RetryAfter how long to wait. Any other
// error is tried again: as long as nothing else goes through either, for ever. The deliveries may be kept.
//
// A call that panics, ends its goroutine or returns another number of errors has failed as a whole, and no message is
// blamed for it. The relay gives the same messages again, fewer at a time, until one of them fails alone.
type Forward func(ctx context.Context, messages []*saga.Delivery) []error

// Relay carries the messages of a queue over the border of this database, in their order, each at least once and with
// its id. The queue is that of an endpoint: a relay named shop.events is saga.To("shop.events"), and what is sent or
// published to it is written by the transaction that sends it. Methods are safe for concurrent use.
//
// One process at a time relays, whoever has the lease; others stand by. See docs/guide/outbox.md.
type Relay struct {
	bus      *Bus
	name     string
	options  RelayOptions // with defaults
	calm     *slog.Logger // see Bus.calm
	forward  Forward
	endpoint *Endpoint // the queue, and what is set for it
	keeper   *lease.Keeper

	newer awaitedNewer // belongs to the loop of the term

	running sync.Mutex  // held by Run
	fatal   chan error  // of capacity 1: why Run cannot go on
	over    atomic.Bool // the context of Run has ended
	drained atomic.Bool // after that, forward had to be cancelled
}

// NewRelay makes a relay of the queue called name, which is subscribed to kinds: commands and events of these kinds go
// there. Without kinds it receives what names it. It checks everything that needs no database, and reports every fault
// at once.
func NewRelay(b *Bus, name string, o RelayOptions, forward Forward, kinds ...string) (*Relay, error) {
	if b == nil {
		return nil, fmt.Errorf("relay %.80q: the bus is nil", name)
	}
	o, optionErr := o.withDefaults(b.log)
	faults := []error{saga.CheckName(name), optionErr, checkKinds(kinds)}
	if forward == nil {
		faults = append(faults, errors.New("forward is nil"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("relay %.80q: %w", name, err)
	}
	r := &Relay{bus: b, name: name, options: o, calm: b.outage.Logger(o.Logger), forward: forward,
		fatal: make(chan error, 1)}
	r.endpoint = b.newEndpoint(name, o.endpoint(), &handlers{subscribed: kinds})
	r.endpoint.relay = true
	var err error
	r.keeper, err = lease.NewKeeper(b.pool.Pool, b.leases, lease.Job{Name: r.leaseName(), Run: r.work},
		lease.Options{Lease: o.Lease, Stop: o.Drain + stopSlack, Holder: o.Server, Logger: r.calm})
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

// leaseName is of one lease for each relay. An endpoint's name has no slash.
func (r *Relay) leaseName() string { return "relay/" + r.name }

// Name is the relay's name, and that of its queue.
func (r *Relay) Name() string { return r.name }

// Connections is how many connections Run opens beside those of the bus's pool: one for the queue and one for the
// lease. With PollOnly it is 0, see Endpoint.Connections.
func (r *Relay) Connections() int {
	if r.bus.wakeup == PollOnly {
		return 0
	}
	return relayConns + 1
}

// Holding tells whether this process is the one that relays now. It is for metrics; the next moment it may be
// otherwise.
func (r *Relay) Holding() bool {
	_, ok := r.keeper.Holding()
	return ok
}

// Install creates the queue and subscribes it to the relay's kinds. It needs the right to create tables, and does
// nothing when that was done before. When it returns, every message that is published from then on reaches the relay.
func (r *Relay) Install(ctx context.Context) error {
	if err := r.endpoint.Install(ctx); err != nil {
		return fmt.Errorf("install relay %s: %w", r.name, err)
	}
	return nil
}

// Check does what Run does before its first message, and nothing else, see Endpoint.Check.
func (r *Relay) Check(ctx context.Context) error {
	if _, err := r.check(ctx); err != nil {
		return fmt.Errorf("check relay %s: %w", r.name, err)
	}
	return nil
}

// Run relays, or stands by while another process does, until ctx ends. Then it takes nothing more, lets forward finish
// for Drain, deletes what that has relayed, and gives the lease back, so that another goes on at once. Errors are those
// of Endpoint.Run.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.TryLock() {
		return fmt.Errorf("run relay %s: %w", r.name, ErrRunning)
	}
	defer r.running.Unlock()
	r.over.Store(false)
	r.drained.Store(false)
	select {
	case <-r.fatal: // of an earlier Run, which had ended otherwise by then
	default:
	}
	err := r.run(ctx)
	if err == nil && r.drained.Load() {
		err = ErrDrain
	}
	if err != nil {
		return fmt.Errorf("run relay %s: %w", r.name, err)
	}
	return nil
}

func (r *Relay) run(ctx context.Context) error {
	e := r.endpoint
	ground, err := r.check(ctx)
	if err != nil {
		return unlessOver(ctx, err)
	}
	e.ground = ground
	leave, err := r.bus.session.join(ctx, e.queue.ID)
	if err != nil {
		return unlessOver(ctx, err)
	}
	defer leave()
	defer context.AfterFunc(ctx, func() { r.over.Store(true) })()
	defer r.bus.hub.Listen(lease.WakePrefix, func(name string) {
		if name == "" || strings.HasPrefix(name, r.leaseName()) {
			r.keeper.Wake()
		}
	})()
	r.options.Logger.Info("edda: relay started", "endpoint", r.name)
	defer func() { r.options.Logger.Info("edda: relay stopped", "endpoint", r.name, "error", err) }()
	alive := run.NewGroup(context.WithoutCancel(ctx)) // as long as forward runs, a drain included
	alive.Go(r.bus.session.keep)
	if r.bus.wakeup == Notify {
		alive.Go(r.bus.listen)
	}
	group := run.NewGroup(ctx)
	group.Go(r.awaitFatal)
	group.Go(r.bus.clean)
	group.Go(r.keeper.Run)
	err = group.Wait()
	alive.Stop()
	err = errors.Join(err, alive.Wait())
	return err
}

func (r *Relay) check(ctx context.Context) (ground, error) {
	if err := migrations.Check(ctx, r.bus.pool, r.bus.schema); err != nil {
		return ground{}, err
	}
	if err := r.prepare(ctx); err != nil {
		return ground{}, err
	}
	return r.endpoint.check(ctx)
}

// unlessOver is nil when ctx has ended: what fails then is no news.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *Relay) awaitFatal(ctx context.Context) error {
	select {
	case err := <-r.fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// work is one term of this process. life ends when Run is over, when somebody asked the holder to resign, and when the
// lease is lost or in doubt. Only the last ends forward at once: others may be relaying then.
func (r *Relay) work(life context.Context, t lease.Term) error {
	working, cancel := context.WithCancelCause(context.WithoutCancel(life))
	defer cancel(nil)
	side := run.NewGroup(working)
	side.Go(func(working context.Context) error { r.drain(life, working, cancel); return nil })
	r.bus.emit(RelayHeld{Endpoint: r.name, Holding: true})
	err := r.relayTerm(life, working, t)
	r.bus.emit(RelayHeld{Endpoint: r.name})
	if errors.Is(context.Cause(working), ErrDrain) && r.over.Load() {
		r.drained.Store(true)
	}
	cancel(nil)
	_ = side.Wait() // it has no error to tell
	if err != nil && life.Err() == nil && cannotGoOn(err) {
		select {
		case r.fatal <- err:
		default:
		}
	}
	return err
}

// drain ends the work of a term that is over: at once when the lease was lost, else after Drain, or when the lease,
// which is renewed until then, is lost meanwhile.
func (r *Relay) drain(life, working context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-working.Done():
		return
	case <-life.Done():
	}
	if cause := context.Cause(life); errors.Is(cause, lease.ErrLost) {
		cancel(cause)
		return
	}
	for last := time.Now().Add(r.options.Drain); ; {
		trusted := r.keeper.Health().Trusted // by the renewals so far
		if run.Sleep(working, min(time.Until(last), time.Until(trusted))) != nil {
			return
		}
		switch now := time.Now(); {
		case !now.Before(last):
			cancel(ErrDrain)
			return
		case !now.Before(r.keeper.Health().Trusted):
			cancel(lease.ErrLost)
			return
		}
	}
}

// relayTerm runs the loop of one term, with what wakes and steers it.
func (r *Relay) relayTerm(life, working context.Context, t lease.Term) error {
	e := r.endpoint
	pool, err := e.openPool(working)
	if err != nil {
		return err
	}
	defer pool.Close()
	e.knobs, e.alarm = newKnobs(1, 1), wake.NewAlarm(e.options.Poll)
	if err := e.lookAtKnob(life); err != nil {
		return fmt.Errorf("read what is set for it: %w", err)
	}
	defer attach(e, e.alarm)()
	if r.options.Keep > 0 {
		if err := r.bus.ids.KeepAtLeast(life, r.bus.pool, outbox.Outbox, r.options.Keep); err != nil {
			return pg.Explain(err)
		}
	}
	loop := newRelaying(r, t, pool)
	side := run.NewGroup(life)
	side.Go(func(ctx context.Context) error { return e.alarm.Tick(ctx, e.alarm.Wake) })
	side.Go(e.follow)
	side.Go(loop.followKnob)
	err = loop.run(life, working)
	side.Stop()
	return errors.Join(err, side.Wait())
}

const relayConns = 1 // looks and settles take turns

const relayTimeout = 30 * time.Second // of a look, and of a transaction that settles
