package watermill

import (
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// SubscriberOptions are the options of a Subscriber. A zero field is a default; a negative number is an error.
type SubscriberOptions struct {
	// Kind returns the kind of a topic. If it is nil, the topic is the kind.
	Kind func(topic string) string

	// ConsumerGroup makes a separate queue for the group, which gets a copy of each message of the kind that is
	// published after Subscribe or SubscribeInitialize, by a Publisher or by any endpoint. Without it the queue has the
	// name of the kind, and all subscribers share its messages.
	ConsumerGroup string

	// Policy decides about a message that was nacked or not answered in time; attempts are counted, and the message may
	// wait or become a dead letter while later messages are delivered. nil keeps Watermill's rule and the order: the
	// message is delivered again, without end.
	Policy recoverability.Policy

	AckDeadline time.Duration // how long a message may go unanswered; 0 is 30 s, at most 4 min
	// messages delivered at a time, each with a connection; 0 is 1. More than 1 gives up the order
	Concurrency int
	BatchMax    int           // messages taken in one transaction; 0 is 500
	Poll        time.Duration // the longest time between takes without a wake-up; 0 is 1 s
	Logger      *slog.Logger  // nil is slog.Default()
}

const (
	standardDeadline = 30 * time.Second
	mostDeadline     = 4 * time.Minute
)

// Subscriber is Watermill's message.Subscriber over Edda's queues. Safe for concurrent use.
type Subscriber struct {
	bus     *bus.Bus
	options SubscriberOptions

	mu            sync.Mutex
	closed        bool
	subscriptions map[*subscription]bool
	starting      sync.WaitGroup
}

var (
	_ message.Subscriber           = (*Subscriber)(nil)
	_ message.SubscribeInitializer = (*Subscriber)(nil)
)

// NewSubscriber makes a Subscriber. It does no I/O, and returns an error if b is nil or an option is out of range.
func NewSubscriber(b *bus.Bus, o SubscriberOptions) (*Subscriber, error) {
	if b == nil {
		return nil, errors.New("new subscriber: the bus is nil")
	}
	var f option.Faults
	f.Duration("AckDeadline", &o.AckDeadline, standardDeadline, 0, mostDeadline) // a message is in an open transaction
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("new subscriber: %w", err)
	}
	option.Default(&o.Concurrency, 1)
	o.Logger = handlers.Logger(o.Logger)
	if o.Kind == nil {
		o.Kind = func(topic string) string { return topic }
	}
	s := &Subscriber{bus: b, options: o, subscriptions: map[*subscription]bool{}}
	if _, err := s.endpoint("probe", nil); err != nil { // it checks the other options
		return nil, fmt.Errorf("new subscriber: %w", err)
	}
	return s, nil
}

// SubscribeInitialize creates the queue of a topic, and for a consumer group its subscription, so that later messages
// wait for the first Subscribe. It needs the right to create tables, once. It gives up after a minute.
func (s *Subscriber) SubscribeInitialize(topic string) error {
	ctx, cancel := context.WithTimeout(message.NewMessage("", nil).Context(), time.Minute)
	defer cancel()
	_, err := s.install(ctx, topic, nil)
	return err
}

// Subscribe creates the queue as SubscribeInitialize does and delivers its messages, one at a time, until ctx ends or
// Close is called; then the channel is closed. Messages without an ack stay queued. After Close it fails with
// ErrClosed.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	if !s.enter() {
		return nil, fmt.Errorf("subscribe to %s: the subscriber: %w", topic, ErrClosed)
	}
	defer s.starting.Done()
	sub := newSubscription(ctx, s.options)
	e, err := s.install(ctx, topic, sub.hand)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.subscriptions[sub] = true
	s.mu.Unlock()
	sub.start(e, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subscriptions, sub)
	})
	return sub.out, nil
}

func (s *Subscriber) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.starting.Add(1)
	}
	return !s.closed
}

func (s *Subscriber) install(ctx context.Context, topic string, hand rawHandler) (*bus.Endpoint, error) {
	kind := s.options.Kind(topic)
	if err := checkTopic(kind); err != nil {
		return nil, err
	}
	e, err := s.endpoint(kind, hand)
	if err == nil {
		err = e.Install(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	return e, nil
}

type rawHandler = func(*bus.Context, *saga.Delivery) error

// endpoint returns the endpoint for a kind. Its step timeout leaves room for the deadline: steps share a timeout that
// may be a tenth shorter than configured.
func (s *Subscriber) endpoint(kind string, hand rawHandler) (*bus.Endpoint, error) {
	if hand == nil {
		hand = func(*bus.Context, *saga.Delivery) error { return bus.ErrLeave }
	}
	queue := kind
	if s.options.ConsumerGroup != "" {
		queue = groupQueue(kind, s.options.ConsumerGroup)
	}
	return bus.NewEndpoint(s.bus, queue, bus.EndpointOptions{
		Concurrency: s.options.Concurrency, BatchMax: s.options.BatchMax, Poll: s.options.Poll,
		Policy:      s.options.Policy,
		StepTimeout: s.options.AckDeadline*6/5 + time.Second,
	}, bus.HandleRaw(hand, kind))
}

// Close ends all subscriptions and returns when their channels are closed and the acked messages are committed.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.starting.Wait() // no subscription is added any more
	s.mu.Lock()
	open := make([]*subscription, 0, len(s.subscriptions))
	for sub := range s.subscriptions {
		open = append(open, sub)
	}
	s.mu.Unlock()
	for _, sub := range open {
		sub.group.Stop()
	}
	var faults []error
	for _, sub := range open {
		faults = append(faults, sub.group.Wait())
	}
	return errors.Join(faults...)
}
