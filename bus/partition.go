package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/partition"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Partitioned is an endpoint of several queues, each of which is consumed by one process at a time, one batch after
// another: a message goes to the queue of its key, so that the messages of one key are handled in order and without
// conflicts, however many processes there are. Methods are safe for concurrent use.
//
// An endpoint named orders with two partitions has three queues. Senders know orders. One process at a time, the
// distributor, moves what arrives there to orders.p0 and orders.p1, by the key of its saga or its KeyedBy. What a saga
// sends comes from its partition's queue, so that answers and timeouts go straight back to it. See
// docs/guide/partitions.md.
type Partitioned struct {
	bus         *Bus
	name        string
	options     PartitionOptions // with defaults
	group       *partition.Group
	distributor *partitionQueue
	partitions  []*partitionQueue
	line        *lease.Line // of all leases

	running sync.Mutex  // held by Run
	fatal   chan error  // of capacity 1: why Run cannot go on
	changed run.Nudge   // a lease was released, or a process came
	over    atomic.Bool // the context of Run has ended
	drained atomic.Bool // after that, handlers had to be cancelled
}

// partitionQueue is one queue that this process may consume, while it holds its lease.
type partitionQueue struct {
	endpoint *Endpoint
	keeper   *lease.Keeper
}

// NewPartitioned checks everything that needs no database, and reports every fault at once. Each kind needs a key: that
// of a Saga, or a KeyedBy of a HandleTx. Handle is a fault, since EndpointOptions.Ordered keeps the order of keys
// without partitions, and so is HandleRaw.
//
// A deploy that raises a saga's StateVersion keeps the order only when the old processes end before the new ones start,
// see docs/guide/partitions.md.
func NewPartitioned(b *Bus, name string, o PartitionOptions, parts ...Part) (*Partitioned, error) {
	if b == nil {
		return nil, fmt.Errorf("partitioned endpoint %q: the bus is nil", name)
	}
	h, err := collect(parts, Unordered)
	o, optionErr := o.withDefaults(h, int(b.pool.Config().MaxConns))
	nameErr := saga.CheckName(queue.PartitionName(name, max(0, o.Partitions-1)))
	if err = errors.Join(nameErr, err, h.checkPartitioned(), optionErr); err != nil {
		return nil, fmt.Errorf("partitioned endpoint %.80q: %w", name, err)
	}
	p := &Partitioned{
		bus: b, name: name, options: o, line: lease.NewLine(b.pool.Pool), fatal: make(chan error, 1),
		changed: run.NewNudge(),
	}
	p.group, err = partition.NewGroup(partition.GroupOptions{
		Endpoint: name, Partitions: o.Partitions, Pool: b.pool, Schema: b.schema, Routes: b.routes, Leases: b.leases,
		Log: b.log,
	})
	if err == nil {
		err = p.makeQueues(h)
	}
	if err != nil {
		return nil, fmt.Errorf("partitioned endpoint %s: %w", name, err)
	}
	return p, nil
}

func (p *Partitioned) makeQueues(h *handlers) (err error) {
	names := make([]string, p.options.Partitions)
	p.partitions = make([]*partitionQueue, len(names))
	for n := range names {
		names[n] = queue.PartitionName(p.name, n)
		e := p.bus.newEndpoint(names[n], p.options.Endpoint, h.unsubscribed())
		if p.partitions[n], err = p.newQueue(e); err != nil {
			return err
		}
	}
	distributing := *h
	if p.options.Endpoint.DirectOnly {
		distributing.subscribed = nil
	}
	distributing.hasTx = false // no handler runs there
	o := p.options.Endpoint
	o.BatchMax = standardRows
	e := p.bus.newEndpoint(p.name, o, &distributing)
	e.strategy = &targets{names: names, moves: map[route]string{}}
	p.distributor, err = p.newQueue(e)
	return err
}

func (p *Partitioned) newQueue(e *Endpoint) (*partitionQueue, error) {
	keeper, err := lease.NewKeeper(p.bus.pool.Pool, p.bus.leases, lease.Job{
		Name: p.group.Lease(e.name), Run: func(ctx context.Context, t lease.Term) error { return p.work(ctx, e, t) },
	}, lease.Options{
		Lease: p.options.Lease, Stop: p.options.Endpoint.Drain + stopSlack, Holder: p.options.Holder,
		Logger: p.bus.calm, DB: p.line,
	})
	return &partitionQueue{endpoint: e, keeper: keeper}, err
}

// Name returns the endpoint's name.
func (p *Partitioned) Name() string { return p.name }

// Connections returns how many connections Run opens at most beside those of the bus's pool, when this process has all
// partitions: one for each, one for the distributor and one for the leases. With PollOnly it is 0, see
// Endpoint.Connections.
func (p *Partitioned) Connections() int {
	if p.bus.wakeup == PollOnly {
		return 0
	}
	return len(p.partitions) + 2
}

// Holding lists the queues that this process consumes now: of partitions, and the endpoint's own when it is the
// distributor. It is for metrics; the answer may be old when it arrives.
func (p *Partitioned) Holding() []string {
	var names []string
	for _, q := range append(p.partitions[:len(p.partitions):len(p.partitions)], p.distributor) {
		if _, ok := q.keeper.Holding(); ok {
			names = append(names, q.endpoint.name)
		}
	}
	return names
}

// Install creates the queues, stores how many partitions there are, and subscribes the endpoint to its kinds. It needs
// the right to create tables, and does nothing when that was done before. It fails when another number of partitions is
// stored, see Collapse.
func (p *Partitioned) Install(ctx context.Context) error {
	if err := p.install(ctx); err != nil {
		return fmt.Errorf("install partitioned endpoint %s: %w", p.name, err)
	}
	return p.distributor.endpoint.Install(ctx)
}

func (p *Partitioned) install(ctx context.Context) error {
	for _, q := range p.partitions {
		if _, err := p.bus.routes.Create(ctx, q.endpoint.name); err != nil {
			return err
		}
	}
	return p.group.StoreNumber(ctx)
}

// Collapse moves everything that waits in the partitions back to the endpoint's own queue, timeouts included, and
// forgets how many partitions there are. After it the endpoint can be installed with another number of them, or run as
// a plain Endpoint. It returns how many messages it moved.
//
// All processes of the endpoint must have stopped: while one of them holds a lease, Collapse fails and has done
// nothing. It works in small transactions, and may be called again when it was interrupted; until it is done the old
// number stands. It needs the rights of Install.
func (p *Partitioned) Collapse(ctx context.Context) (messages int, err error) {
	if messages, err = p.group.Collapse(ctx); err != nil {
		return messages, fmt.Errorf("collapse the partitions of %s: %w", p.name, err)
	}
	return messages, nil
}

// Check does what Run does before its first message, and nothing else, see Endpoint.Check. It fails when another number
// of partitions is stored.
func (p *Partitioned) Check(ctx context.Context) error {
	if _, err := p.check(ctx); err != nil {
		return fmt.Errorf("check partitioned endpoint %s: %w", p.name, err)
	}
	return nil
}

// check returns what is so of the distributor's queue.
func (p *Partitioned) check(ctx context.Context) (ground, error) {
	if err := migrations.Check(ctx, p.bus.pool, p.bus.schema); err != nil {
		return ground{}, err
	}
	for _, q := range p.partitions {
		if _, err := q.endpoint.findQueue(ctx); err != nil {
			return ground{}, err
		}
	}
	if p.bus.autoInstall {
		if err := p.group.StoreNumber(ctx); err != nil && pg.ClassOf(err) != pg.Denied {
			return ground{}, err
		}
	}
	if err := p.group.CheckNumber(ctx); err != nil {
		return ground{}, err
	}
	return p.distributor.endpoint.check(ctx)
}

// Run takes its share of the partitions, and the work of the distributor when nobody else has it, until ctx ends.
// Processes that come and go change the shares: a partition moves when its batch has ended, or when the lease of a
// process that died is over. At the end Run takes nothing more, lets handlers finish for Endpoint.Drain, and gives each
// partition back when its last handler has ended. Errors are those of Endpoint.Run.
func (p *Partitioned) Run(ctx context.Context) error {
	if !p.running.TryLock() {
		return fmt.Errorf("run partitioned endpoint %s: %w", p.name, ErrRunning)
	}
	defer p.running.Unlock()
	err := p.run(ctx)
	if err != nil {
		return fmt.Errorf("run partitioned endpoint %s: %w", p.name, err)
	}
	return nil
}

// run joins the session for as long as this process shares the work, whether it has a partition or not: the connection
// that listens locks the session's row, and a process that stands by listens too.
func (p *Partitioned) run(ctx context.Context) error {
	found, err := p.check(ctx)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	leave, err := p.bus.session.join(ctx, found.queue.ID)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	defer leave()
	p.over.Store(false)
	p.drained.Store(false)
	p.bus.log.Info("edda: partitioned endpoint started", "endpoint", p.name, "partitions", len(p.partitions))
	err = p.runQueues(ctx)
	p.bus.log.Info("edda: partitioned endpoint stopped", "endpoint", p.name, "error", err)
	return err
}

func (p *Partitioned) runQueues(ctx context.Context) error {
	defer p.line.Close(ctx)
	defer context.AfterFunc(ctx, func() { p.over.Store(true) })()
	defer p.bus.hub.Listen(lease.WakePrefix+p.group.Lease(""), p.leaseChanged)()
	alive := run.NewGroup(context.WithoutCancel(ctx)) // as long as handlers run, a drain included
	alive.Go(p.bus.session.keep)
	if p.bus.wakeup == Notify {
		alive.Go(p.bus.listen)
	}
	group := run.NewGroup(ctx)
	group.Go(p.awaitFatal)
	group.Go(p.distributor.keeper.Run)
	group.Go(p.newBalance().Run)
	err := group.Wait()
	alive.Stop()
	err = errors.Join(err, alive.Wait())
	if err == nil && p.drained.Load() {
		err = ErrDrain
	}
	return err
}

func (p *Partitioned) newBalance() *partition.Balance {
	keepers := make([]*lease.Keeper, len(p.partitions))
	for n, q := range p.partitions {
		keepers[n] = q.keeper
	}
	return partition.NewBalance(partition.BalanceOptions{
		Group: p.group, Keepers: keepers, Line: p.line, Lease: p.options.Lease, Holder: p.options.Holder,
		Changed: p.changed, GiveUp: p.giveUp, Log: p.bus.calm, Announce: p.announce,
	})
}

func (p *Partitioned) announce(ctx context.Context, leaseName string) {
	if p.bus.wakeup == Notify {
		p.bus.notifier.Send(ctx, lease.WakePrefix+leaseName)
	}
}

func (p *Partitioned) awaitFatal(ctx context.Context) error {
	select {
	case err := <-p.fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// work is one term of this process with one queue. Every batch is guarded by the term: it fails when another term has
// begun, and none begins while it is open. So no two processes have batches of one partition open at a time, whatever
// they believe of their leases.
func (p *Partitioned) work(ctx context.Context, e *Endpoint, t lease.Term) error {
	err := p.group.CheckNumber(ctx)
	if err == nil {
		e.fence = func(b *pgx.Batch) { p.bus.leases.QueueGuard(b, t) }
		err = p.runQueue(ctx, e, t)
	}
	switch {
	case errors.Is(err, ErrDrain):
		if p.over.Load() {
			p.drained.Store(true)
		}
		return nil
	case err != nil && ctx.Err() == nil && cannotGoOn(err):
		p.giveUp(err)
	}
	return err
}

func (p *Partitioned) runQueue(ctx context.Context, e *Endpoint, t lease.Term) error {
	if e.strategy.handles() {
		return e.Run(ctx)
	}
	side := run.NewGroup(ctx)
	side.Go(func(ctx context.Context) error { return p.group.CollapseLate(ctx, t) })
	err := e.Run(ctx)
	side.Stop()
	return errors.Join(err, side.Wait())
}

// giveUp ends Run with the first such error.
func (p *Partitioned) giveUp(err error) {
	select {
	case p.fatal <- err:
	default:
	}
}

// cannotGoOn reports whether err needs a human. Other errors pass with time: the keeper tries again.
func cannotGoOn(err error) bool {
	for _, known := range []error{
		ErrNotInstalled, partition.ErrOtherNumber, migrations.ErrNotMigrated, migrations.ErrTooNew,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return fatal(err)
}

// leaseChanged is called when a lease of the endpoint was released, or when somebody asked its holder to resign; with
// "" when that may have happened unseen.
func (p *Partitioned) leaseChanged(what string) {
	p.changed.Send()
	for _, q := range p.partitions {
		if what == "" || what == q.endpoint.name {
			q.keeper.Wake()
		}
	}
	if what == "" || what == p.name {
		p.distributor.keeper.Wake()
	}
}
