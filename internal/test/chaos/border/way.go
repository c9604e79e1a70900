package main

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/saga"
)

// way is the way from one database to the other: a relay, a stream whose subjects are the parts of a topic, an intake.
type way struct {
	URL   string // of the nodes
	Parts int    // with watermill-nats each has one message in hand: so many may one transaction of the intake gather

	// Batches takes the publisher and the subscriber of package jetstream in place of watermill-nats: one consumer,
	// which has many messages in hand.
	Batches bool
	// RabbitMQ takes a RabbitMQ and watermill-amqp, with a queue for each part. It has to be installed.
	RabbitMQ bool
}

// ways are those that are tested and wanted. RabbitMQ is one that somebody asks for.
func ways(parts int) (all []way) {
	for _, w := range []way{{Parts: parts, Batches: true}, {Parts: parts}, {Parts: parts, RabbitMQ: true}} {
		if flags.over == "" && !w.RabbitMQ || flags.over == w.String() {
			all = append(all, w)
		}
	}
	return all
}

func (w way) String() string {
	switch {
	case w.Batches:
		return "batches"
	case w.RabbitMQ:
		return "rabbitmq"
	}
	return "watermill-nats"
}

// answer is how long a publisher waits for one.
const answer = 2 * time.Second

// ackWait is how long a part stands still when the process that has its message in hand dies.
const ackWait = 2 * time.Second

// lay makes the stream, on all nodes, and its consumers: one for each part, or one in all.
func (w way) lay(ctx context.Context, nodes *cluster.Cluster) error {
	o := cluster.StreamOptions{Subjects: []string{topic + ".*"}, Replicas: nodes.Nodes(), Batches: w.Batches}
	if err := nodes.CreateStream(ctx, stream, o); err != nil {
		return err
	}
	if w.Batches {
		return nodes.CreateOrderedConsumer(ctx, stream, jetstream.ConsumerName(topic))
	}
	for _, subject := range brokers.Subjects(topic, w.Parts) {
		o := cluster.ConsumerOptions{Subject: subject, MaxPending: 1, AckWait: ackWait, Push: true}
		if err := nodes.CreateConsumer(ctx, stream, brokers.Consumer(reader, subject), o); err != nil {
			return err
		}
	}
	return nil
}

// relay makes the relay. The caller calls end after it.
func (w way) relay(ctx context.Context, here *side, o bus.RelayOptions) (relay *bus.Relay, end func(), err error) {
	publisher, end, err := w.publisher(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.Permanent = brokers.Unfit
	all := watermill.RelayOptions{RelayOptions: o, Topic: topic}
	if !w.Batches {
		all.Parallel, all.Key = 16, func(d *saga.Delivery) string { return d.Info.Header(keyHeader) }
	}
	if w.RabbitMQ { // its only node is away for so long that others would be tried, and overtake
		all.Stuck = math.MaxInt32
	}
	relay, err = watermill.NewRelay(here.bus, relayName, publisher, all, said{}.Kind())
	return relay, end, err
}

func (w way) publisher(ctx context.Context) (message.Publisher, func(), error) {
	if w.RabbitMQ {
		publisher, err := connected(ctx, func() (message.Publisher, error) {
			return brokers.NewRabbitMQPublisher(w.URL, w.rabbitMQ(), nil)
		})
		return publisher, func() { _ = publisher.Close() }, err
	}
	key := brokers.ByMetadata(keyHeader)
	if !w.Batches {
		publisher, err := brokers.NewJetStreamPublisher(w.URL,
			brokers.JetStreamOptions{Parts: w.Parts, Key: key, AckWait: answer}, nil)
		return publisher, func() { _ = publisher.Close() }, err
	}
	conn, err := jetstream.Connect(w.URL)
	if err != nil {
		return nil, nil, err
	}
	publisher, err := jetstream.NewPublisher(conn,
		jetstream.PublisherOptions{Parts: w.Parts, Key: key, AckWait: answer})
	return publisher, conn.Close, err
}

// intake makes the intake. The caller calls end after it. around may put something between the two.
func (w way) intake(ctx context.Context, there *side, endpoint string,
	around func(message.Subscriber) message.Subscriber) (intake *watermill.Intake, end func(), err error) {
	subscriber, end, err := w.subscriber(ctx)
	if err != nil {
		return nil, nil, err
	}
	o := watermill.IntakeOptions{Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler)}
	intake, err = watermill.NewIntake(there.bus, topic, around(subscriber), o)
	return intake, end, err
}

func (w way) subscriber(ctx context.Context) (message.Subscriber, func(), error) {
	if w.RabbitMQ {
		subscriber, err := connected(ctx, func() (message.Subscriber, error) {
			return brokers.NewRabbitMQSubscriber(w.URL, w.rabbitMQ(), nil)
		})
		if err != nil {
			return nil, nil, err
		}
		return brokers.AllOf(subscriber, brokers.Subjects(topic, w.Parts)...), func() { _ = subscriber.Close() }, nil
	}
	if !w.Batches {
		subscriber, err := brokers.NewJetStreamSubscriber(w.URL,
			brokers.ConsumerOf{Stream: stream, Name: reader, AckWait: ackWait}, nil)
		if err != nil {
			return nil, nil, err
		}
		return brokers.AllOf(subscriber, brokers.Subjects(topic, w.Parts)...), func() { _ = subscriber.Close() }, nil
	}
	conn, err := jetstream.Connect(w.URL)
	if err != nil {
		return nil, nil, err
	}
	subscriber, err := jetstream.NewSubscriber(conn,
		jetstream.SubscriberOptions{Stream: stream, Logger: slog.New(slog.DiscardHandler)})
	return subscriber, conn.Close, err
}

// rabbitMQ is the options of both ends.
func (w way) rabbitMQ() brokers.RabbitMQOptions {
	return brokers.RabbitMQOptions{Parts: w.Parts, Key: brokers.ByMetadata(keyHeader), AckWait: answer,
		Heartbeat: time.Second}
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

// straight puts nothing between.
func straight(s message.Subscriber) message.Subscriber { return s }
