package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/batch"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/partition"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Partitioned is an endpoint of several queues. A message goes to the queue of its key, and one process at a time
// consumes a queue, one batch at a time. So the messages of a key are handled in order and without conflicts, in any
// number of processes. Methods are safe for concurrent use.
//
// An endpoint named orders with two partitions has three queues. Senders send to orders. One process at a time, the
// distributor, moves messages from there to orders.p0 and orders.p1, by the key of the saga or the KeyedBy. The
// sender of a saga's messages is its partition's queue, so that answers and timeouts go straight back to it. See
// docs/guide/partitions.md.
type Partitioned struct {
	bus         *Bus
	name        string
	group       *partition.Group
	consumer    *partition.Consumer
	distributor *Endpoint
	partitions  []*Endpoint

	running sync.Mutex // held by Run
	held    held       // by Run
}

// NewPartitioned makes a partitioned endpoint called name. It checks everything that needs no database, and returns
// an error that lists every fault. Each kind needs a key: that of a Saga, or a KeyedBy of a HandleTx. Handle is a
// fault, because EndpointOptions.Ordered keeps the order of keys without partitions; HandleRaw is a fault too.
//
// A deploy that raises a saga's StateVersion keeps the order only if the old processes end before the new ones start,
// see docs/guide/partitions.md.
func NewPartitioned(b *Bus, name string, o PartitionOptions, parts ...Part) (*Partitioned, error) {
	if b == nil {
		return nil, fmt.Errorf("partitioned endpoint %q: the bus is nil", name)
	}
	h, err := collect(parts, Unordered, b.codec)
	o, optionErr := o.withDefaults(h, int(b.pool.Config().MaxConns))
	nameErr := saga.CheckName(queue.PartitionName(name, max(0, o.Partitions-1)))
	if err = errors.Join(nameErr, err, checkPartitioned(h), optionErr); err != nil {
		return nil, fmt.Errorf("partitioned endpoint %.80q: %w", name, err)
	}
	p := &Partitioned{bus: b, name: name, held: held{calls: &run.Calls{}}}
	p.group = partition.NewGroup(partition.GroupOptions{
		Endpoint: name, Partitions: o.Partitions, Pool: b.pool, Schema: b.schema, Routes: b.routes,
		Leases: b.tables.leases,
		Log:    b.log,
	})
	if err := p.makeQueues(o, h); err != nil {
		return nil, fmt.Errorf("partitioned endpoint %s: %w", name, err)
	}
	return p, nil
}

func (p *Partitioned) makeQueues(o PartitionOptions, h *handlers.Table) (err error) {
	names := make([]string, o.Partitions)
	queues := make([]partition.Queue, o.Partitions)
	for n := range names {
		names[n] = queue.PartitionName(p.name, n)
		p.partitions = append(p.partitions, p.bus.newEndpoint(names[n], o.Endpoint, h.Unsubscribed()))
		queues[n] = underLease(p.partitions[n])
	}
	distributing := *h
	if o.Endpoint.DirectOnly {
		distributing.Subscribed = nil
	}
	distributing.HasTx = false // no handler runs there
	distributor := o.Endpoint
	distributor.BatchMax = standardRows
	p.distributor = p.bus.newEndpoint(p.name, distributor, &distributing)
	for _, e := range append(p.partitions, p.distributor) {
		e.held.calls = p.held.calls
	}
	p.distributor.strategy = batch.NewTargets(names, partition.Of)
	p.consumer, err = partition.NewConsumer(partition.ConsumerOptions{
		Group: p.group, Partitions: queues, Distributor: underLease(p.distributor), Lease: o.Lease,
		Stop: o.Endpoint.Drain + stopSlack, Holder: o.Holder, Hub: p.bus.hub, Log: p.bus.calm,
		Announce:  func(ctx context.Context, payload string) { announce(ctx, p.bus, payload) },
		CannotFix: cannotFix,
	})
	return err
}

// underLease wraps an endpoint as a queue whose batches check the term of a lease.
func underLease(e *Endpoint) partition.Queue {
	return partition.Queue{Endpoint: e.name, Run: func(ctx context.Context, t lease.Term) error {
		if !e.running.TryLock() {
			return ErrRunning
		}
		e.fence = func(b *pgx.Batch) { e.bus.tables.leases.QueueGuard(b, t) }
		return e.runToEnd(ctx)
	}}
}

// announce notifies other processes, if they listen.
func announce(ctx context.Context, b *Bus, payload string) {
	if b.wakeup == Notify {
		b.notifier.Send(ctx, payload)
	}
}

// cannotFix reports whether only a human can correct err. After other errors the keeper tries again.
func cannotFix(err error) bool {
	for _, known := range []error{ErrNotInstalled, version.ErrNotMigrated, version.ErrTooNew} {
		if errors.Is(err, known) {
			return true
		}
	}
	return batch.Fatal(err)
}

// Name returns the endpoint's name.
func (p *Partitioned) Name() string { return p.name }

// Connections returns the bus's pool, and the most connections that Run opens in addition to the pool's own, when
// this process has all partitions: one for each partition, one for the distributor and one for the leases. With
// PollOnly it returns 0, see Endpoint.Connections.
func (p *Partitioned) Connections() (pool *pgxpool.Pool, more int) {
	if p.bus.wakeup == PollOnly {
		return p.bus.pool.Pool, 0
	}
	return p.bus.pool.Pool, p.group.Partitions + 2
}

// Holding returns the names of the queues that this process consumes now: queues of partitions, and the endpoint's
// own queue when this process is the distributor. It is for metrics; the answer may be out of date when it arrives.
func (p *Partitioned) Holding() []string { return p.consumer.Holding() }

// Install creates the queues, stores the number of partitions, and subscribes the endpoint to its kinds. It needs the
// right to create tables, and does nothing if the endpoint is installed. It fails if a different number of partitions
// is stored: edda endpoint partitions, or operate.Endpoints.SetPartitions, changes it.
func (p *Partitioned) Install(ctx context.Context) error {
	if err := p.group.Install(ctx); err != nil {
		return fmt.Errorf("install partitioned endpoint %s: %w", p.name, err)
	}
	return p.distributor.Install(ctx)
}

// Check makes the checks of Run and takes no message, see Endpoint.Check. It fails if a different number of
// partitions is stored.
func (p *Partitioned) Check(ctx context.Context) error {
	if _, err := p.check(ctx); err != nil {
		return fmt.Errorf("check partitioned endpoint %s: %w", p.name, err)
	}
	return nil
}

// check returns the values that it read about the distributor's queue.
func (p *Partitioned) check(ctx context.Context) (resolved, error) {
	if err := version.Check(ctx, p.bus.pool, p.bus.schema); err != nil {
		return resolved{}, err
	}
	if err := p.group.Check(ctx, p.bus.autoInstall); err != nil {
		return resolved{}, err
	}
	return p.distributor.check(ctx)
}

// Run consumes its share of the partitions, and is the distributor if no other process is, until ctx ends. Shares
// change when processes start or stop: a partition moves when its batch has ended, or when the lease of a crashed
// process is over. At the end Run takes no more messages, lets handlers finish for Endpoint.Drain, and releases each
// partition when its last handler has ended. Errors are those of Endpoint.Run.
func (p *Partitioned) Run(ctx context.Context) error {
	if !p.running.TryLock() {
		return fmt.Errorf("run partitioned endpoint %s: %w", p.name, ErrRunning)
	}
	ends := run.Ends{Name: p.name, Drain: p.distributor.options.Drain, Log: p.bus.log, Calls: p.held.calls,
		Leave: p.giveUp, Within: p.distributor.options.StepTimeout + run.Patience}
	return named("run partitioned endpoint "+p.name, ends.Run(ctx, p.runToEnd))
}

// giveUp gives up the resources of all endpoints.
func (p *Partitioned) giveUp() {
	for _, e := range append(p.partitions, p.distributor) {
		e.held.giveUp()
	}
	p.held.giveUp()
}

// runToEnd joins the session for as long as this process shares the work, even without a partition: the connection that
// listens locks the session, and a process on standby listens too. It outlives Run when a handler does not return.
func (p *Partitioned) runToEnd(ctx context.Context) error {
	defer p.running.Unlock()
	found, err := p.check(ctx)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	leave, err := p.bus.join(ctx, found.queue.ID, p.held.calls.Left)
	if err != nil {
		return run.UnlessOver(ctx, err)
	}
	defer p.held.session(leave)()
	p.bus.log.Info("edda: partitioned endpoint started", "endpoint", p.name, "partitions", p.group.Partitions)
	err = p.consumer.Run(ctx)
	p.bus.log.Info("edda: partitioned endpoint stopped", "endpoint", p.name, "error", err)
	return err
}
