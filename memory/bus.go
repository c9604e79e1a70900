package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

// Options configure a Bus. Every zero is a default.
type Options struct {
	Routes []bus.Routing // only where a kind has no single consumer
	Codec  saga.Codec    // of message bodies; nil is JSON
	Logger *slog.Logger  // nil is slog.Default()
	// called after the effects that an event reports are visible; must not block. See bus.Options.Events
	Events     func(event.Event)
	Rare       func(event.Event)                    // every event except Handled
	Middleware func(endpoint string) bus.Middleware // see bus.Options
	// see bus.Options; messages of a Scheduler are sent while the bus is locked, so Outgoing must not call the bus
	Outgoing func(ctx context.Context, i *saga.Info)
	Around   func(ctx context.Context, t *event.Transaction, run func(context.Context))

	// Start gives the bus a clock that begins at this time and moves only by Advance. Zero is real time.
	Start time.Time
}

// Bus has the queues, the saga instances and the clock. Its senders have the signatures of *bus.Bus. It is safe for
// concurrent use.
type Bus struct {
	world
	codec saga.Codec
	log   *slog.Logger
	hooks hookSet
}

// hookSet has the functions of Options that the bus calls.
type hookSet struct {
	handlers.Hooks
	handlers.Receivers
	middleware func(endpoint string) bus.Middleware
}

// New makes an empty Bus. It returns an error if a route has an invalid name.
func New(o Options) (*Bus, error) {
	b := &Bus{codec: o.Codec, log: handlers.Logger(o.Logger)}
	if b.codec == nil {
		b.codec = saga.JSON
	}
	b.hooks.Receivers = handlers.Receivers{Events: o.Events, Rare: o.Rare, Log: b.log}
	b.hooks.middleware = o.Middleware
	b.hooks.Hooks = handlers.Hooks{Outgoing: o.Outgoing, Around: handlers.NewAround(o.Around, b.log)}
	routes := map[string]string{}
	for _, r := range o.Routes {
		if err := errors.Join(saga.CheckName(r.Kind), saga.CheckName(r.Endpoint)); err != nil {
			return nil, fmt.Errorf("new memory bus: route of %.80q to %.80q: %w", r.Kind, r.Endpoint, err)
		}
		routes[r.Kind] = r.Endpoint
	}
	b.world.begin(o.Start, routes)
	return b, nil
}

// SingleReplica reports whether the bus is limited to one process, so that nothing takes a lease. It returns true.
func (b *Bus) SingleReplica() bool { return true }

// Send puts a command into the queue of the one endpoint that handles its kind. It returns the errors of bus.Bus.Send,
// except those of connections and commits.
func (b *Bus) Send(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	return b.send(ctx, saga.Command, m, o)
}

// Publish puts a copy into the queue of every endpoint that handles the kind, and returns their number, which may be 0.
// It returns the errors of Send.
func (b *Bus) Publish(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	return b.send(ctx, saga.Event, m, o)
}

func (b *Bus) send(ctx context.Context, intent saga.Intent, m saga.Message, o []saga.SendOption) (saga.Sent, error) {
	rt := saga.Runtime{Now: b.Now(), NewID: newID, Codec: b.codec, Outgoing: b.hooks.Outgoing, Caller: ctx}
	out, err := rt.Compose(intent, m, o...)
	if err != nil {
		return saga.Sent{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return saga.Sent{}, fmt.Errorf("send %s: %w", out.Info.Kind, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.put(out)
}

// Instance reads the live instance of d with this key, as bus.Bus.Instance does.
func (b *Bus) Instance(
	ctx context.Context, d *saga.Definition, key string, into any,
) (i saga.Instance, ok bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return saga.Instance{}, false, err
	}
	if err := persistence.CheckInto(d, into); err != nil {
		return saga.Instance{}, false, err
	}
	b.mu.Lock()
	i, ok = b.sagas.byKey(d.Name(), key)
	b.mu.Unlock()
	if !ok || !i.RememberedUntil().IsZero() {
		return saga.Instance{}, false, nil
	}
	if into == nil {
		return i, true, nil
	}
	return i, true, persistence.ReadState(d, i, into)
}

// Queue counts the messages of an endpoint.
type Queue struct {
	Endpoint string
	Ready    int // due, and taken by no worker
	Delayed  int // due later: timeouts, delays and retries
	InHand   int // being handled, or waiting for a message of the same key that is
	Paused   string
}

// Queues returns the queues of all endpoints, by name.
func (b *Bus) Queues() []Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.look()
}

// DeadLetters returns the newest 10,000 messages that are not retried any more, the oldest first.
func (b *Bus) DeadLetters() []recoverability.Letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.letters.all()
}

// Discarded returns the newest 10,000 messages that were consumed without effect, the oldest first.
func (b *Bus) Discarded() []recoverability.Discarded {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.discarded.all()
}

// Retry puts a dead letter back into its queue, with no attempts counted. It returns operate.ErrNoLetter for an
// unknown number.
func (b *Bus) Retry(number int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	letter, ok := b.letters.take(func(l recoverability.Letter) bool { return l.Number == number })
	if !ok {
		return fmt.Errorf("retry dead letter %d: %w", number, deadletter.ErrNotFound)
	}
	b.putBack(letter)
	return nil
}

// Pause stops an endpoint from taking messages until Resume. It returns bus.ErrNotInstalled if the endpoint is unknown.
func (b *Bus) Pause(endpoint, reason string) error { return b.setPaused(endpoint, reason, true) }

// Resume ends the pause of an endpoint, whether Pause or a policy began it. It returns bus.ErrNotInstalled if the
// endpoint is unknown.
func (b *Bus) Resume(endpoint string) error { return b.setPaused(endpoint, "", false) }

func (b *Bus) setPaused(endpoint, reason string, paused bool) error {
	b.mu.Lock()
	q := b.queues[endpoint]
	if q == nil {
		b.mu.Unlock()
		return fmt.Errorf("endpoint %.80q: %w", endpoint, bus.ErrNotInstalled)
	}
	was := q.paused
	q.paused, q.reason = paused, reason
	b.change()
	b.mu.Unlock()
	switch {
	case paused && !was:
		b.tellPaused(endpoint, reason)
	case !paused && was:
		b.log.Info("edda: endpoint resumed", "endpoint", endpoint)
		b.emit(event.Resumed{Endpoint: endpoint})
	}
	return nil
}

func (b *Bus) tellPaused(endpoint, reason string) {
	b.log.Warn("edda: endpoint is paused", "endpoint", endpoint, "reason", reason)
	b.emit(event.Paused{Endpoint: endpoint, Reason: reason})
}

func (b *Bus) emit(e event.Event) { b.hooks.Emit(e) }

// newID returns a new UUIDv7.
func newID() saga.ID {
	id, err := uuid.NewV7()
	if err != nil { // the system has no random numbers left
		panic("memory: " + err.Error())
	}
	return saga.ID(id)
}
