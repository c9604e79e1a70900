package jetstream

import (
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// SubscriberOptions are the options of a Subscriber. A zero field is a default; a negative number is an error.
type SubscriberOptions struct {
	Stream   string                    // the stream of the consumers; required
	Consumer func(topic string) string // the durable consumer of a topic; nil is ConsumerName
	// InHand is the number of messages that may be delivered and not yet answered; 0 is 256, at most 10,000. Use 1 for
	// a receiver that works on several at a time.
	InHand int
	// Drain is how long the messages in hand may be answered after the end of a subscription; 0 is 5 s, at most 24 h.
	Drain  time.Duration
	Logger *slog.Logger // nil is slog.Default()
}

const (
	standardInHand = 256
	mostInHand     = 10_000
	standardDrain  = 5 * time.Second
	askWithin      = 5 * time.Second // an answer of JetStream to anything but a message
	leaveWithin    = time.Second
)

// Group is the priority group of the consumers. The server pins a single reader, which gets messages; its other readers
// stand by.
const Group = "edda"

// ConsumerName returns the topic with an underscore for each character that the name of a consumer must not have.
func ConsumerName(topic string) string {
	return strings.NewReplacer(".", "_", "*", "_", ">", "_", " ", "_", "/", "_", "\\", "_").Replace(topic)
}

// ConsumerConfig returns the configuration of a consumer that a Subscriber needs. Make the consumer before you
// subscribe, with the filter that you want, by CreateConsumer of package jetstream of NATS or by your deployment.
func ConsumerConfig(name string) natsjs.ConsumerConfig {
	return natsjs.ConsumerConfig{
		Durable: name, AckPolicy: natsjs.AckExplicitPolicy, DeliverPolicy: natsjs.DeliverAllPolicy,
		AckWait: 30 * time.Second, MaxDeliver: -1, MaxAckPending: 4 * standardInHand,
		PriorityPolicy: natsjs.PriorityPolicyPinned, PriorityGroups: []string{Group}, PinnedTTL: 6 * time.Second,
	}
}

// Subscriber is Watermill's message.Subscriber over existing durable pull consumers. It is safe for concurrent use.
type Subscriber struct {
	js      natsjs.JetStream
	options SubscriberOptions

	mu            sync.Mutex
	closed        bool
	subscriptions map[*subscription]bool
}

var _ message.Subscriber = (*Subscriber)(nil)

// NewSubscriber makes a Subscriber on a connection of Connect, which stays the caller's. It does no I/O. It returns an
// error if an option is out of range, or if the connection buffers messages while it is down or gives up reconnecting.
func NewSubscriber(conn *nats.Conn, o SubscriberOptions) (*Subscriber, error) {
	var f option.Faults
	f.Add(check(conn))
	if o.Stream == "" {
		f.Add(errors.New("Stream is empty"))
	}
	f.Int("InHand", &o.InHand, standardInHand, 1, mostInHand)
	f.Duration("Drain", &o.Drain, standardDrain, 0, 24*time.Hour)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("new subscriber: %w", err)
	}
	if o.Consumer == nil {
		o.Consumer = ConsumerName
	}
	o.Logger = handlers.Logger(o.Logger)
	js, err := natsjs.New(conn)
	if err != nil {
		return nil, fmt.Errorf("new subscriber: %w", err)
	}
	return &Subscriber{js: js, options: o, subscriptions: map[*subscription]bool{}}, nil
}

// Subscribe delivers the messages of the topic's consumer in their order, up to InHand of them before the first is
// answered, until ctx ends or Close is called. Then it delivers no more messages, those in hand may be answered for
// Drain, and the channel is closed. While the server is away the channel stays open and no message comes.
//
// It returns an error if the consumer does not exist or would lose or reorder messages, if the server is away, or,
// after Close, watermill.ErrClosed.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	sub := &subscription{
		js: s.js, options: s.options, name: s.options.Consumer(topic), out: make(chan *message.Message),
		group: run.NewGroup(ctx),
	}
	if err := sub.check(ctx); err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("subscribe to %s: the subscriber: %w", topic, watermill.ErrClosed)
	}
	s.subscriptions[sub] = true
	sub.group.Go(func(ctx context.Context) error {
		defer s.ended(sub)
		defer close(sub.out)
		sub.keepReading(ctx)
		return nil
	})
	return sub.out, nil
}

func (s *Subscriber) ended(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscriptions, sub)
}

// Close ends all subscriptions, and returns nil when their channels are closed. The connection stays open.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	open := make([]*subscription, 0, len(s.subscriptions))
	for sub := range s.subscriptions {
		open = append(open, sub)
	}
	s.mu.Unlock()
	for _, sub := range open {
		sub.group.Stop()
	}
	for _, sub := range open {
		_ = sub.group.Wait() // its member returns no error
	}
	return nil
}
