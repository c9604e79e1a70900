package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// PartitionOptions of a partitioned endpoint. Every zero is a default, and a negative number an error.
type PartitionOptions struct {
	// Partitions is how many queues there are, and how many batches run at a time in all processes together; 0 is 8, at most 256. It is stored
	// when the endpoint is installed, and another number is an error from then on: see Gather.
	Partitions int

	// Lease is how long a partition stays with a process that has died; 0 is 15 s, 2 s to 1 h. Processes look at each other every third of it, and
	// at least every 5 s.
	Lease time.Duration

	Server   string          // the name of this process in the table lease, for people who look; "" is the host's name
	Endpoint EndpointOptions // of each partition. Concurrency is 1; no ClusterConcurrency and no Ordered
}

const (
	standardPartitions = 8
	mostPartitions     = 256
	shortestTTL        = 2 * time.Second
	longestTTL         = time.Hour
	stopSlack          = 5 * time.Second // for what follows the last handler of a partition
)

// Partitioned is an endpoint of several queues, each of which is consumed by one process at a time, one batch after another: a
// message goes to the queue of its key, so that the messages of one key are handled in order and without conflicts, however many
// processes there are. Methods are safe for concurrent use.
//
// For an endpoint named orders with two partitions there are three queues. Senders know orders. One process at a time moves what
// arrives there to orders.p0 and orders.p1, by the key of its saga or its KeyedBy. What a saga sends comes from its
// partition's queue, so that answers and timeouts go straight back to it. See docs/partitions.md.
type Partitioned struct {
	bus     *Bus
	name    string
	options PartitionOptions
	ttl     lease.Options // with defaults
	front   *post         // the distributor
	posts   []*post       // the partitions
	line    *lease.Line   // of all leases

	running sync.Mutex    // held by Run
	fatal   chan error    // of capacity 1: why Run cannot go on
	changed chan struct{} // of capacity 1: a lease was released, or a server came
	over    atomic.Bool   // the context of Run has ended
	drained atomic.Bool   // after that, handlers had to be cancelled
}

// post is one queue that this process may work on, while it holds its lease.
type post struct {
	endpoint *Endpoint
	keeper   *lease.Keeper
}

// NewPartitioned checks everything that needs no database, and reports every fault at once. Each kind needs a key: that of a
// Saga, or a KeyedBy of a HandleTx. Handle is a fault, since EndpointOptions.Ordered keeps the order of keys without
// partitions, and so is HandleRaw.
func NewPartitioned(b *Bus, name string, o PartitionOptions, parts ...Part) (*Partitioned, error) {
	if b == nil {
		return nil, fmt.Errorf("partitioned endpoint %q: the bus is nil", name)
	}
	h, err := collect(parts, Unordered)
	o, optionErr := o.withDefaults(h, int(b.pool.Config().MaxConns))
	nameErr := saga.CheckName(partitionName(name, max(0, o.Partitions-1)))
	if err = errors.Join(nameErr, err, h.checkPartitioned(), optionErr); err != nil {
		return nil, fmt.Errorf("partitioned endpoint %.80q: %w", name, err)
	}
	p := &Partitioned{
		bus: b, name: name, options: o, line: lease.NewLine(b.pool), fatal: make(chan error, 1), changed: make(chan struct{}, 1),
		ttl: lease.Options{TTL: o.Lease, Stop: o.Endpoint.Drain + stopSlack, Holder: o.Server, Logger: b.log},
	}
	if err := p.makePosts(h); err != nil {
		return nil, fmt.Errorf("partitioned endpoint %s: %w", name, err)
	}
	return p, nil
}

func (o PartitionOptions) withDefaults(h *handlers, poolSize int) (PartitionOptions, error) {
	var faults []error
	if o.Partitions < 0 || o.Partitions > mostPartitions {
		faults = append(faults, fmt.Errorf("Partitions is %d, want 1 to %d (0 is %d)", o.Partitions, mostPartitions, standardPartitions))
		o.Partitions = 0
	}
	if o.Lease != 0 && (o.Lease < shortestTTL || o.Lease > longestTTL) {
		faults = append(faults, fmt.Errorf("Lease is %v, want %v to %v (0 is 15s)", o.Lease, shortestTTL, longestTTL))
	}
	e := &o.Endpoint
	if e.Concurrency > 1 {
		faults = append(faults, fmt.Errorf("Endpoint.Concurrency is %d: a partition handles one batch at a time, so raise Partitions instead", e.Concurrency))
	}
	if e.ClusterConcurrency != 0 {
		faults = append(faults, errors.New("Endpoint.ClusterConcurrency: Partitions is how many batches run at a time in the cluster"))
	}
	if e.Ordered != Unordered {
		faults = append(faults, errors.New("Endpoint.Ordered is for endpoints with Handle; partitions are in order as they are"))
	}
	setDefault(&o.Partitions, standardPartitions)
	setDefault(&o.Lease, 15*time.Second)
	setDefault(&e.Concurrency, 1)
	var err error
	o.Endpoint, err = e.withDefaults(h, poolSize)
	return o, errors.Join(append(faults, err)...)
}

// checkPartitioned: every kind has a key, so that there is a promise for each.
func (h *handlers) checkPartitioned() error {
	var faults []error
	if h.leased {
		faults = append(faults, errors.New("Handle has no partitions: give it an endpoint of its own, with EndpointOptions.Ordered if the messages of a key must come one after another"))
	}
	if h.raw != nil {
		faults = append(faults, errors.New("HandleRaw has no keys, and so no partitions: give it an endpoint of its own"))
	}
	for _, c := range h.consumers {
		if c.tx != nil && c.key == nil {
			faults = append(faults, fmt.Errorf("%s has no key: give it a KeyedBy, or an endpoint without partitions", c.kind))
		}
	}
	return errors.Join(faults...)
}

// checkUnpartitioned: a key that nobody looks at is a misunderstanding.
func (h *handlers) checkUnpartitioned() error {
	var faults []error
	for _, c := range h.consumers {
		if c.tx != nil && c.key != nil {
			faults = append(faults, fmt.Errorf("%s has a key and the endpoint no partitions: make it one of NewPartitioned", c.kind))
		}
	}
	return errors.Join(faults...)
}

func (p *Partitioned) makePosts(h *handlers) (err error) {
	names := make([]string, p.options.Partitions)
	p.posts = make([]*post, len(names))
	for n := range names {
		names[n] = partitionName(p.name, n)
		if p.posts[n], err = p.newPost(p.bus.newEndpoint(names[n], p.options.Endpoint, h.unsubscribed())); err != nil {
			return err
		}
	}
	distributing := *h
	if p.options.Endpoint.Addressed {
		distributing.subscribed = nil
	}
	distributing.hasTx = false // no handler runs there
	o := p.options.Endpoint
	o.BatchMax = standardRows
	front := p.bus.newEndpoint(p.name, o, &distributing)
	front.partitions = &spread{names: names, moves: map[route]string{}}
	p.front, err = p.newPost(front)
	return err
}

func (p *Partitioned) newPost(e *Endpoint) (*post, error) {
	o := p.ttl
	o.DB = p.line
	keeper, err := lease.NewKeeper(p.bus.pool, p.bus.leases, lease.Job{
		Name: p.leaseName(e.name), Run: func(ctx context.Context, t lease.Term) error { return p.work(ctx, e, t) },
	}, o)
	return &post{endpoint: e, keeper: keeper}, err
}

// leaseName begins all names of the endpoint alike. An endpoint's name has no slash.
func (p *Partitioned) leaseName(what string) string { return "partition/" + p.name + "/" + what }

// Name is the endpoint's name.
func (p *Partitioned) Name() string { return p.name }

// Connections is how many connections Run opens at most beside those of the bus's pool, when this process has all partitions: one
// for each, one for the distributor and one for the leases. With PollOnly it is 0, see Endpoint.Connections.
func (p *Partitioned) Connections() int {
	if p.bus.wakeup == PollOnly {
		return 0
	}
	return len(p.posts) + 2
}

// Holding lists the queues that this process consumes now: of partitions, and the endpoint's own when it is the one that distributes. It is for
// metrics; the next moment it may be otherwise.
func (p *Partitioned) Holding() []string {
	var names []string
	for _, s := range append(p.posts[:len(p.posts):len(p.posts)], p.front) {
		if _, ok := s.keeper.Holding(); ok {
			names = append(names, s.endpoint.name)
		}
	}
	return names
}

// Install creates the queues, stores how many partitions there are, and subscribes the endpoint to its kinds. It needs the right to create tables, and
// does nothing when that was done before. It fails when another number of partitions is stored, see Gather.
func (p *Partitioned) Install(ctx context.Context) error {
	if err := p.install(ctx); err != nil {
		return fmt.Errorf("install partitioned endpoint %s: %w", p.name, err)
	}
	return p.front.endpoint.Install(ctx)
}

func (p *Partitioned) install(ctx context.Context) error {
	for _, s := range p.posts {
		if _, err := s.endpoint.createQueue(ctx); err != nil {
			return err
		}
	}
	return p.storeNumber(ctx)
}

// Check does what Run does before its first message, and nothing else, see Endpoint.Check. It fails when another number of partitions is stored.
func (p *Partitioned) Check(ctx context.Context) error {
	if err := p.check(ctx); err != nil {
		return fmt.Errorf("check partitioned endpoint %s: %w", p.name, err)
	}
	return nil
}

func (p *Partitioned) check(ctx context.Context) error {
	if err := migrations.Check(ctx, p.bus.pool, p.bus.schema); err != nil {
		return err
	}
	for _, s := range p.posts {
		if _, err := s.endpoint.findQueue(ctx); err != nil {
			return err
		}
	}
	if p.bus.autoInstall {
		if err := p.storeNumber(ctx); err != nil && pg.ClassOf(err) != pg.Denied {
			return err
		}
	}
	if err := p.checkNumber(ctx); err != nil {
		return err
	}
	_, err := p.front.endpoint.check(ctx)
	return err
}

// settingName is where the number of partitions is stored.
func (p *Partitioned) settingName() string { return "partitions/" + p.name }

func (p *Partitioned) storeNumber(ctx context.Context) error {
	b := p.bus
	if err := p.checkNumber(ctx); !errors.Is(err, ErrNotInstalled) {
		return err
	}
	if _, err := b.pool.Exec(ctx, b.sql.Get("set_partitions"), p.settingName(), strconv.Itoa(len(p.posts))); err != nil {
		return fmt.Errorf("store the number of partitions: %w", explain(err))
	}
	return p.checkNumber(ctx)
}

// errOtherNumber: the keys of messages that wait in the partitions would move away from them.
var errOtherNumber = errors.New("another number of partitions is stored")

func (p *Partitioned) checkNumber(ctx context.Context) error {
	var stored string
	err := p.bus.pool.QueryRow(ctx, p.bus.sql.Get("partitions"), p.settingName()).Scan(&stored)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: let the owner of the schema install it once, with Partitioned.Install", ErrNotInstalled)
	case err != nil:
		return fmt.Errorf("read the number of partitions: %w", explain(err))
	case stored != strconv.Itoa(len(p.posts)):
		return fmt.Errorf("%w: %s, and the options say %d: set PartitionOptions.Partitions to %[2]s, or stop all processes of the endpoint, call Partitioned.Gather and install it anew",
			errOtherNumber, stored, len(p.posts))
	}
	return nil
}

// Run takes its share of the partitions, and the work of the distributor when nobody else has it, until ctx ends. Processes that come and go change the
// shares: a partition moves when its batch has ended, or when the lease of a process that died is over. At the end Run takes nothing
// more, lets handlers finish for Endpoint.Drain, and gives each partition back when its last handler has ended. Errors are those of Endpoint.Run.
func (p *Partitioned) Run(ctx context.Context) error {
	if !p.running.TryLock() {
		return fmt.Errorf("run partitioned endpoint %s: %w", p.name, ErrRunning)
	}
	defer p.running.Unlock()
	if err := p.check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("run partitioned endpoint %s: %w", p.name, err)
	}
	p.over.Store(false)
	p.drained.Store(false)
	p.bus.log.Info("edda: partitioned endpoint started", "endpoint", p.name, "partitions", len(p.posts))
	err := p.runPosts(ctx)
	p.bus.log.Info("edda: partitioned endpoint stopped", "endpoint", p.name, "error", err)
	if err != nil {
		return fmt.Errorf("run partitioned endpoint %s: %w", p.name, err)
	}
	return nil
}

func (p *Partitioned) runPosts(ctx context.Context) error {
	defer p.line.Close(ctx)
	defer context.AfterFunc(ctx, func() { p.over.Store(true) })()
	prefix := p.leaseName("")
	defer p.bus.hub.watchLeases(prefix, func(name string) { p.leaseChanged(strings.TrimPrefix(name, prefix)) })()
	group := run.NewGroup(ctx)
	if p.bus.wakeup == Notify {
		group.Go(p.bus.listen)
	}
	group.Go(p.awaitFatal)
	group.Go(p.front.keeper.Run)
	group.Go(func(ctx context.Context) error { return newBalance(p).run(ctx) })
	err := group.Wait()
	if err == nil && p.drained.Load() {
		err = ErrDrain
	}
	return err
}

func (p *Partitioned) awaitFatal(ctx context.Context) error {
	select {
	case err := <-p.fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// work is one term of this process with one queue. Every batch is guarded by the term: it fails when another term has begun, and none begins while it
// is open. So no two processes have batches of one partition open at a time, whatever they believe of their leases.
func (p *Partitioned) work(ctx context.Context, e *Endpoint, t lease.Term) error {
	err := p.checkNumber(ctx)
	if err == nil {
		e.fence = func(b *pgx.Batch) { p.bus.leases.QueueGuard(b, t) }
		err = p.runPost(ctx, e, t)
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

func (p *Partitioned) runPost(ctx context.Context, e *Endpoint, t lease.Term) error {
	if e.partitions == nil {
		return e.Run(ctx)
	}
	side := run.NewGroup(ctx)
	side.Go(func(ctx context.Context) error { return p.gatherLate(ctx, t) })
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

// cannotGoOn tells errors that need a human from those that pass with time: the keeper tries again.
func cannotGoOn(err error) bool {
	for _, known := range []error{ErrNotInstalled, errOtherNumber, migrations.ErrNotMigrated, migrations.ErrTooNew} {
		if errors.Is(err, known) {
			return true
		}
	}
	return fatal(err)
}

// leaseChanged is called when a lease of the endpoint was released, or one whose holder is asked to resign; "" when that may have happened unseen.
func (p *Partitioned) leaseChanged(what string) {
	signal(p.changed)
	for _, s := range p.posts {
		if what == "" || what == s.endpoint.name {
			s.keeper.Wake()
		}
	}
	if what == "" || what == p.name {
		p.front.keeper.Wake()
	}
}

// leaseWatch is somebody who wants to know of leases whose names begin alike.
type leaseWatch struct {
	prefix string
	wake   func(name string)
}

// watchLeases calls wake for notifications about leases under prefix, until stop is called. wake must not block.
func (h *hub) watchLeases(prefix string, wake func(name string)) (stop func()) {
	w := &leaseWatch{prefix: prefix, wake: wake}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches = append(h.watches, w)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, other := range h.watches {
			if other == w {
				h.watches = append(h.watches[:i:i], h.watches[i+1:]...)
				return
			}
		}
	}
}

// leasesChanged tells of one lease, or with "" of all.
func (h *hub) leasesChanged(name string) {
	h.mu.Lock()
	watches := h.watches
	h.mu.Unlock()
	for _, w := range watches {
		if name == "" || strings.HasPrefix(name, w.prefix) {
			w.wake(name)
		}
	}
}
