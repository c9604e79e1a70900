package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/chaos/border/brokers"
	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/edda-go/edda/saga"
)

// way is the way from one database to the other: a relay, a stream whose subjects are the parts of a topic, an intake.
type way struct {
	URL   string // of the nodes
	Parts int    // with watermill-nats each has one message in hand: so many may one transaction of the intake gather

	// Batches takes the publisher and the subscriber of package jetstream in place of watermill-nats: one consumer,
	// which has many messages in hand.
	Batches bool
}

// ways are those that are tested and wanted.
func ways(parts int) (all []way) {
	for _, w := range []way{{Parts: parts, Batches: true}, {Parts: parts}} {
		if flags.over == "" || flags.over == w.String() {
			all = append(all, w)
		}
	}
	return all
}

func (w way) String() string {
	if w.Batches {
		return "batches"
	}
	return "watermill-nats"
}

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
func (w way) relay(here *side, o bus.RelayOptions) (relay *bus.Relay, end func(), err error) {
	publisher, end, err := w.publisher()
	if err != nil {
		return nil, nil, err
	}
	o.Permanent = brokers.Unfit
	all := watermill.RelayOptions{RelayOptions: o, Topic: topic}
	if !w.Batches {
		all.Parallel, all.Key = 16, func(d *saga.Delivery) string { return d.Info.Header(keyHeader) }
	}
	relay, err = watermill.NewRelay(here.bus, relayName, publisher, all, said{}.Kind())
	return relay, end, err
}

func (w way) publisher() (message.Publisher, func(), error) {
	const answer = 2 * time.Second
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
func (w way) intake(there *side, endpoint string,
	around func(message.Subscriber) message.Subscriber) (intake *watermill.Intake, end func(), err error) {
	subscriber, end, err := w.subscriber()
	if err != nil {
		return nil, nil, err
	}
	o := watermill.IntakeOptions{Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler)}
	intake, err = watermill.NewIntake(there.bus, topic, around(subscriber), o)
	return intake, end, err
}

func (w way) subscriber() (message.Subscriber, func(), error) {
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

// straight puts nothing between.
func straight(s message.Subscriber) message.Subscriber { return s }
