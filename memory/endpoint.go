package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
)

// Endpoint is a named queue and the handlers that consume it.
type Endpoint struct {
	bus      *Bus
	name     string
	options  bus.EndpointOptions
	handlers *handlers.Table

	running   atomic.Bool // set by Run
	taking    chan struct{}
	handled   atomic.Int64
	calls     run.Calls
	recipient *message.Recipient
	box       *box // set by Check
}

// NewEndpoint makes an endpoint of b from the options and parts of bus.NewEndpoint. It makes the same checks, and also
// refuses HandleTx and a name that is taken. Check or Run subscribes the endpoint to its kinds.
func NewEndpoint(b *Bus, name string, o bus.EndpointOptions, parts ...bus.Part) (*Endpoint, error) {
	if b == nil {
		return nil, fmt.Errorf("endpoint %.80q: the bus is nil", name)
	}
	table, o, err := bus.ResolveEndpoint(name, o, math.MaxInt, b.codec, parts...)
	if err != nil {
		return nil, err
	}
	if table.HasTx {
		return nil, fmt.Errorf("endpoint %s: HandleTx needs a transaction of Postgres, and this bus is in memory: "+
			"use Handle, or a *bus.Bus", name)
	}
	if b.hooks.middleware != nil {
		if m := b.hooks.middleware(name); m != nil {
			table = table.Within(func(next handlers.Next) handlers.Next { return m(next) })
		}
	}
	e := &Endpoint{bus: b, name: name, options: o, handlers: table, taking: make(chan struct{}, 1)}
	e.recipient = &message.Recipient{
		Name: name, Handlers: table, Memory: contention.NewMemory(), Codec: b.codec, NewID: newID,
		Handled: &e.handled,
		Log:     b.log, Calm: b.log, Routes: b.router, Hooks: b.hooks.Hooks,
		Options: message.Options{
			Calls:     &e.calls,
			BatchTime: o.BatchTime, StepTimeout: o.StepTimeout, Decoding: min(mostDecoding, o.StepTimeout),
			UnknownKindTimeout: o.UnknownKindTimeout, Policy: o.Policy, ConflictPolicy: o.ConflictPolicy,
			Judges: message.NewJudges(),
		},
	}
	return e, b.add(e, name)
}

const mostDecoding = 5 * time.Second

var errTaken = errors.New("the bus already has an endpoint of this name: choose a different one")

func (b *Bus) add(r runner, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, other := range b.runners {
		if named, ok := other.(interface{ Name() string }); ok && named.Name() == name {
			return fmt.Errorf("%s: %w", name, errTaken)
		}
	}
	b.runners = append(b.runners, r)
	return nil
}

// Name returns the endpoint's name.
func (e *Endpoint) Name() string { return e.name }

// Check creates the endpoint's queue and subscribes it to its kinds. From then on messages may be sent to it.
func (e *Endpoint) Check(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("check endpoint %s: %w", e.name, err)
	}
	q := e.bus.subscribe(e.name, e.handlers.Subscribed)
	e.bus.mu.Lock()
	defer e.bus.mu.Unlock()
	if e.box == nil { // workers may be reading it
		e.box, e.recipient.Queue = q, q.queue
	}
	return nil
}

// Run consumes the queue until ctx ends. Then it takes no more messages, lets handlers finish for Drain, and cancels
// the others, and waits for these at most two seconds. It returns nil after a clean drain, bus.ErrDrain if it had to
// cancel, and bus.ErrRunning if Run is already running. Run may be called again after it has returned.
func (e *Endpoint) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		return fmt.Errorf("run endpoint %s: %w", e.name, bus.ErrRunning)
	}
	ends := run.Ends{Name: e.name, Drain: e.options.Drain, Log: e.bus.log, Calls: &e.calls,
		Within: e.options.StepTimeout + run.Patience}
	err := ends.Run(ctx, e.runToEnd)
	if errors.Is(err, bus.ErrDrain) {
		err = fmt.Errorf("run endpoint %s: %w", e.name, err)
	}
	return err
}

// runToEnd does the work of Run. If a handler does not return, it outlives Run, and Run cannot be called again.
func (e *Endpoint) runToEnd(ctx context.Context) error {
	defer e.running.Store(false)
	if err := e.Check(ctx); err != nil {
		return run.UnlessOver(ctx, err)
	}
	e.handled.Store(0)
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	e.setRunning(true)
	defer e.setRunning(false)
	e.bus.log.Info("edda: endpoint started", "endpoint", e.name, "concurrency", e.workers())
	drain := run.NewGroup(ctx)
	drain.Go(func(ctx context.Context) error { run.Drain(ctx, work, e.options.Drain, cancel); return nil })
	workers := run.NewGroup(context.WithoutCancel(ctx))
	for range e.workers() {
		workers.Go(func(context.Context) error { e.consume(ctx, work); return nil })
	}
	err := workers.Wait()
	if errors.Is(context.Cause(work), bus.ErrDrain) {
		err = bus.ErrDrain
	}
	cancel(nil)
	e.bus.log.Info("edda: endpoint stopped", "endpoint", e.name, "error", err)
	return errors.Join(err, drain.Wait())
}

// workers returns the number of handlers that run at the same time.
func (e *Endpoint) workers() int {
	if most := e.options.ClusterConcurrency; most > 0 {
		return min(most, e.options.Concurrency)
	}
	return e.options.Concurrency
}

func (e *Endpoint) begun() bool { return e.box != nil && e.box.running }

func (e *Endpoint) setRunning(running bool) {
	e.bus.mu.Lock()
	defer e.bus.mu.Unlock()
	e.box.running = running
	e.bus.change()
}

// consume handles one message after another until ctx ends.
func (e *Endpoint) consume(ctx, work context.Context) {
	for {
		w := e.take(ctx, work)
		if w == nil {
			return
		}
		w.around(work)
	}
}

// take waits for a message that may be handled now. It returns nil when ctx has ended. One worker takes at a time, so
// the messages of an instance, or of a key, are handled in the order of the queue.
func (e *Endpoint) take(ctx, work context.Context) *work {
	select {
	case e.taking <- struct{}{}:
		defer func() { <-e.taking }()
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		r, at, changed := e.next()
		if r == nil {
			wait := forEver
			if e.bus.real && !at.IsZero() {
				wait = time.Until(at)
			}
			run.Wait(ctx, wait, changed)
			continue
		}
		if w := e.prepare(work, r); w != nil {
			return w
		}
	}
	return nil
}

// next takes the first row, or returns when to try again, and a channel that is closed when something changes before.
func (e *Endpoint) next() (r *row, at time.Time, changed <-chan struct{}) {
	e.bus.mu.Lock()
	defer e.bus.mu.Unlock()
	r, at = e.box.next(e.bus.now())
	if r != nil {
		e.box.inHand++
	}
	return r, at, e.bus.changed
}
