package brokers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// Way is how the messages of a topic cross a broker: its clients, and what has to be there before them.
type Way interface {
	// Lay makes the stream and its consumers, or the queues.
	Lay(ctx context.Context, n nodes.Nodes) error

	// Publisher connects a publisher, which end closes.
	Publisher(ctx context.Context) (p message.Publisher, end func(), err error)

	// Subscriber connects a subscriber, which end closes.
	Subscriber(ctx context.Context) (s message.Subscriber, end func(), err error)

	// Unread is how many messages the broker has yet to give, or to hear an ack of.
	Unread(ctx context.Context, n nodes.Nodes) (uint64, error)
}

// The ways.
const (
	Batches       = "batches"        // package jetstream: one consumer, with many messages in hand
	WatermillNATS = "watermill-nats" // each part has one message in hand
	RabbitMQ      = "rabbitmq"       // watermill-amqp, with a queue for each part
	Kafka         = "kafka"          // watermill-kafka, with partitions for parts
)

// Route is a topic at a broker, and how messages reach it. A stream of JetStream has the topic's name.
type Route struct {
	Over    string // one of the ways
	URL     string // of the broker
	Topic   string
	Parts   int  // of the topic; the messages of a part keep their order
	NoMsgID bool // leaves the ids out, so that JetStream drops no repeat
}

// KeyHeader is the header whose value decides the part of a message.
const KeyHeader = "key"

const (
	answer = 2 * time.Second // how long a publisher waits for one
	// ackWait is how long a part stands still when the process that has its message in hand dies.
	ackWait = 2 * time.Second
	reader  = "there" // the application that subscribes
)

// Way returns the way of the route.
func (r Route) Way() Way {
	switch r.Over {
	case Batches:
		return overBatches{jetStream{r}}
	case WatermillNATS:
		return overNATS{jetStream{r}}
	case RabbitMQ:
		return overRabbitMQ{r}
	}
	return overKafka{r}
}

// Relay returns the options of a relay on the route. Except in batches, it publishes several keys at a time.
func (r Route) Relay(parallel int) watermill.RelayOptions {
	o := watermill.RelayOptions{RelayOptions: outbox.RelayOptions{Permanent: Unfit}, Topic: r.Topic}
	if r.Over != Batches && parallel > 1 {
		o.Parallel, o.Key = parallel, func(d *saga.Delivery) string { return d.Info.Header(KeyHeader) }
	}
	if r.Over == RabbitMQ { // its only node is away for so long that others would be tried, and overtake
		o.Stuck = math.MaxInt32
	}
	return o
}

// Start starts a broker, lays the route, and sets the URL. count is the number of nodes; a RabbitMQ has one.
func (r *Route) Start(ctx context.Context, count int) (n nodes.Nodes, err error) {
	if r.Over == RabbitMQ {
		n, err = rabbit.Start(ctx, rabbit.Options{})
	} else {
		n, err = cluster.Start(ctx, cluster.Options{Nodes: count})
	}
	if err != nil {
		return nil, err
	}
	r.URL = n.URL()
	if err := r.Way().Lay(ctx, n); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// jetStream is what both ways over JetStream have in common.
type jetStream struct{ Route }

// stream is kept by all nodes.
func (w jetStream) stream(n nodes.Nodes) cluster.StreamOptions {
	return cluster.StreamOptions{Subjects: Subjects(w.Topic, w.Parts), Replicas: n.Nodes(), Batches: w.Over == Batches}
}

func (w jetStream) Unread(ctx context.Context, n nodes.Nodes) (uint64, error) {
	return n.(*cluster.Cluster).Unread(ctx, w.Topic)
}

// overBatches is the way of package jetstream.
type overBatches struct{ jetStream }

func (w overBatches) Lay(ctx context.Context, n nodes.Nodes) error {
	c := n.(*cluster.Cluster)
	if err := c.CreateStream(ctx, w.Topic, w.stream(n)); err != nil {
		return err
	}
	return c.CreateOrderedConsumer(ctx, w.Topic, jetstream.ConsumerName(w.Topic))
}

func (w overBatches) Publisher(context.Context) (message.Publisher, func(), error) {
	conn, err := jetstream.Connect(w.URL)
	if err != nil {
		return nil, nil, err
	}
	p, err := jetstream.NewPublisher(conn,
		jetstream.PublisherOptions{Parts: w.Parts, Key: ByMetadata(KeyHeader), AckWait: answer, NoMsgID: w.NoMsgID})
	return p, conn.Close, err
}

func (w overBatches) Subscriber(context.Context) (message.Subscriber, func(), error) {
	conn, err := jetstream.Connect(w.URL)
	if err != nil {
		return nil, nil, err
	}
	s, err := jetstream.NewSubscriber(conn,
		jetstream.SubscriberOptions{Stream: w.Topic, Logger: slog.New(slog.DiscardHandler)})
	return s, conn.Close, err
}

// overNATS is the way of watermill-nats.
type overNATS struct{ jetStream }

func (w overNATS) Lay(ctx context.Context, n nodes.Nodes) error {
	c := n.(*cluster.Cluster)
	if err := c.CreateStream(ctx, w.Topic, w.stream(n)); err != nil {
		return err
	}
	for _, subject := range Subjects(w.Topic, w.Parts) {
		o := cluster.ConsumerOptions{Subject: subject, MaxPending: 1, AckWait: ackWait, Push: true}
		if err := c.CreateConsumer(ctx, w.Topic, Consumer(reader, subject), o); err != nil {
			return err
		}
	}
	return nil
}

func (w overNATS) Publisher(context.Context) (message.Publisher, func(), error) {
	p, err := NewJetStreamPublisher(w.URL, JetStreamOptions{Parts: w.Parts, Key: ByMetadata(KeyHeader), AckWait: answer,
		NoMsgID: w.NoMsgID}, nil)
	return p, func() { _ = p.Close() }, err
}

func (w overNATS) Subscriber(context.Context) (message.Subscriber, func(), error) {
	s, err := NewJetStreamSubscriber(w.URL, ConsumerOf{Stream: w.Topic, Name: reader, AckWait: ackWait}, nil)
	return AllOf(s, Subjects(w.Topic, w.Parts)...), func() { _ = s.Close() }, err
}

// overRabbitMQ is the way of watermill-amqp.
type overRabbitMQ struct{ Route }

func (w overRabbitMQ) options() RabbitMQOptions {
	return RabbitMQOptions{Parts: w.Parts, Key: ByMetadata(KeyHeader), AckWait: answer, Heartbeat: time.Second}
}

func (w overRabbitMQ) Lay(ctx context.Context, n nodes.Nodes) error {
	s, err := NewRabbitMQSubscriber(w.URL, w.options(), nil)
	if err != nil {
		return err
	}
	queues := Subjects(w.Topic, w.Parts)
	for _, queue := range queues {
		err = errors.Join(err, s.SubscribeInitialize(queue))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("make the queues: %w", err)
	}
	return n.(*rabbit.Broker).AwaitKept(ctx, queues...)
}

func (w overRabbitMQ) Publisher(ctx context.Context) (message.Publisher, func(), error) {
	p, err := connected(ctx, func() (message.Publisher, error) { return NewRabbitMQPublisher(w.URL, w.options(), nil) })
	return p, func() { _ = p.Close() }, err
}

func (w overRabbitMQ) Subscriber(ctx context.Context) (message.Subscriber, func(), error) {
	s, err := connected(ctx,
		func() (message.Subscriber, error) { return NewRabbitMQSubscriber(w.URL, w.options(), nil) })
	return AllOf(s, Subjects(w.Topic, w.Parts)...), func() { _ = s.Close() }, err
}

// connected makes a client, and makes it again while the broker is away: watermill-amqp needs it to be there.
func connected[T any](ctx context.Context, client func() (T, error)) (T, error) {
	for {
		c, err := client()
		if err == nil || run.Sleep(ctx, 200*time.Millisecond) != nil {
			return c, err
		}
	}
}

// Unread counts the messages that no consumer has in hand: AMQP has no figure for the others.
func (w overRabbitMQ) Unread(_ context.Context, n nodes.Nodes) (left uint64, err error) {
	for _, queue := range Subjects(w.Topic, w.Parts) {
		ready, readyErr := n.(*rabbit.Broker).Ready(queue)
		left, err = left+uint64(ready), errors.Join(err, readyErr)
	}
	return left, err
}

// overKafka is the way of watermill-kafka. The URL is a list of brokers, with commas.
type overKafka struct{ Route }

func (overKafka) Lay(context.Context, nodes.Nodes) error { return nil }

func (w overKafka) Publisher(context.Context) (message.Publisher, func(), error) {
	p, err := NewKafkaPublisher(strings.Split(w.URL, ","), ByMetadata(KeyHeader), nil)
	return p, func() { _ = p.Close() }, err
}

func (w overKafka) Subscriber(context.Context) (message.Subscriber, func(), error) {
	s, err := NewKafkaSubscriber(strings.Split(w.URL, ","), w.Topic, nil)
	return s, func() { _ = s.Close() }, err
}

// Unread is unknown: kfake and Kafka report the position of a group differently.
func (overKafka) Unread(context.Context, nodes.Nodes) (uint64, error) { return 0, nil }
