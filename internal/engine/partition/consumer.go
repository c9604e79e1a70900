package partition

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/store/lease"
)

// Queue is one queue that a process may consume while it holds the queue's lease.
type Queue struct {
	Endpoint string
	// Run consumes the queue until ctx ends. Every batch is guarded by t. ErrDrain means that it had to cancel
	// handlers.
	Run func(ctx context.Context, t lease.Term) error
}

// ConsumerOptions are the options of a Consumer. All are required.
type ConsumerOptions struct {
	Group       *Group
	Partitions  []Queue // by their numbers
	Distributor Queue   // of the endpoint's own queue

	Lease  time.Duration
	Stop   time.Duration // how long Queue.Run may take to return
	Holder string
	Hub    *wake.Hub
	Log    *slog.Logger // for failures that are tried again

	Announce  func(ctx context.Context, payload string) // notifies other processes; it may do nothing
	CannotFix func(err error) bool                      // reports whether time does not cure err
}

// Consumer consumes this process's share of the queues of one partitioned endpoint. Safe for concurrent use.
type Consumer struct {
	ConsumerOptions
	partitions  []*lease.Keeper // by their numbers
	distributor *lease.Keeper
	line        *lease.Line // of all leases
	changed     run.Nudge   // a lease was released, or a process came
	ending      run.Ending
}

// NewConsumer returns a Consumer that is not yet running.
func NewConsumer(o ConsumerOptions) (*Consumer, error) {
	c := &Consumer{ConsumerOptions: o, line: lease.NewLine(o.Group.Pool.Pool), changed: run.NewNudge()}
	for _, q := range o.Partitions {
		k, err := c.newKeeper(q)
		if err != nil {
			return nil, err
		}
		c.partitions = append(c.partitions, k)
	}
	d := o.Distributor
	var err error
	c.distributor, err = c.newKeeper(Queue{Endpoint: d.Endpoint, Run: func(ctx context.Context, t lease.Term) error {
		side := run.NewGroup(ctx)
		side.Go(func(ctx context.Context) error { return o.Group.CollapseLate(ctx, t) })
		err := d.Run(ctx, t)
		side.Stop()
		return errors.Join(err, side.Wait())
	}})
	return c, err
}

func (c *Consumer) newKeeper(q Queue) (*lease.Keeper, error) {
	work := func(ctx context.Context, t lease.Term) error { return c.work(ctx, q, t) }
	return lease.NewKeeper(c.Group.Pool.Pool, c.Group.Leases, lease.Job{Name: c.Group.Lease(q.Endpoint), Run: work},
		lease.Options{Lease: c.Lease, Stop: c.Stop, Holder: c.Holder, Logger: c.Log, DB: c.line})
}

// Holding lists the queues that this process consumes now. The list may be out of date when it is read.
func (c *Consumer) Holding() (endpoints []string) {
	for n, k := range c.partitions {
		if _, ok := k.Holding(); ok {
			endpoints = append(endpoints, c.Partitions[n].Endpoint)
		}
	}
	if _, ok := c.distributor.Holding(); ok {
		endpoints = append(endpoints, c.Distributor.Endpoint)
	}
	return endpoints
}

// Run consumes until ctx ends, and returns when the work with each queue has ended. run.ErrDrain means that handlers
// had to be cancelled. Only one Run may be active.
func (c *Consumer) Run(ctx context.Context) error {
	defer c.line.Close(ctx)
	c.ending.Begin(ctx)
	defer c.Hub.Listen(lease.WakePrefix+c.Group.Lease(""), c.leaseChanged)()
	group := run.NewGroup(ctx)
	group.Go(c.ending.Await)
	group.Go(c.distributor.Run)
	group.Go(newBalance(c).run)
	return c.ending.Err(group.Wait())
}

// work is one term of this process with one queue. Every batch is guarded by the term: it fails if a new term has
// begun, and no new term begins while it is open. So two processes never have batches of one partition open at the
// same time, even if both count on the lease.
func (c *Consumer) work(ctx context.Context, q Queue, t lease.Term) error {
	err := c.Group.agree(ctx)
	if err == nil {
		err = q.Run(ctx, t)
	}
	switch {
	case errors.Is(err, run.ErrDrain):
		c.ending.Drained()
		return nil
	case err != nil && ctx.Err() == nil && c.hopeless(err):
		c.ending.GiveUp(err)
	}
	return err
}

// hopeless reports whether time does not cure err.
func (c *Consumer) hopeless(err error) bool {
	return errors.Is(err, ErrOtherNumber) || c.CannotFix(err)
}

// leaseChanged is called when a lease of the endpoint was released, or when its holder was asked to resign. of is ""
// if that may have happened unnoticed.
func (c *Consumer) leaseChanged(of string) {
	c.changed.Send()
	for n, k := range c.partitions {
		if of == "" || of == c.Partitions[n].Endpoint {
			k.Wake()
		}
	}
	if of == "" || of == c.Distributor.Endpoint {
		c.distributor.Wake()
	}
}
