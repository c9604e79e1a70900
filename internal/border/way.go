package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/border/brokers"
	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/saga"
)

// way is the way from one database to the other: a relay, a stream whose subjects are the parts of a topic, an intake.
type way struct {
	URL   string // of the nodes
	Parts int    // each has one message in hand: so many may one transaction of the intake gather
}

// ackWait is how long a part stands still when the process that has its message in hand dies.
const ackWait = 2 * time.Second

// lay makes the stream, on all nodes, and a consumer for each part.
func (w way) lay(ctx context.Context, nodes *cluster.Cluster) error {
	o := cluster.StreamOptions{Subjects: []string{topic + ".*"}, Replicas: nodes.Nodes()}
	if err := nodes.CreateStream(ctx, stream, o); err != nil {
		return err
	}
	for _, subject := range brokers.Subjects(topic, w.Parts) {
		o := cluster.ConsumerOptions{Subject: subject, MaxPending: 1, AckWait: ackWait, Push: true}
		if err := nodes.CreateConsumer(ctx, stream, brokers.Consumer(reader, subject), o); err != nil {
			return err
		}
	}
	return nil
}

// relay makes the relay, and its publisher, which the caller closes.
func (w way) relay(here *side, o bus.RelayOptions) (*bus.Relay, message.Publisher, error) {
	publisher, err := brokers.NewJetStreamPublisher(w.URL,
		brokers.JetStreamOptions{Parts: w.Parts, Key: brokers.ByMetadata(keyHeader), AckWait: 2 * time.Second}, nil)
	if err != nil {
		return nil, nil, err
	}
	o.Permanent = brokers.Unfit
	relay, err := watermill.NewRelay(here.bus, relayName, publisher, watermill.RelayOptions{
		RelayOptions: o, Topic: topic, Parallel: 16, Key: func(d *saga.Delivery) string { return d.Info.Header(keyHeader) },
	}, said{}.Kind())
	return relay, publisher, err
}

// intake makes the intake, and its subscriber, which the caller closes. around may put something between the two.
func (w way) intake(there *side, endpoint string, around func(message.Subscriber) message.Subscriber) (*watermill.Intake, message.Subscriber, error) {
	subscriber, err := brokers.NewJetStreamSubscriber(w.URL, brokers.ConsumerOf{Stream: stream, Name: reader, AckWait: ackWait}, nil)
	if err != nil {
		return nil, nil, err
	}
	all := around(brokers.AllOf(subscriber, brokers.Subjects(topic, w.Parts)...))
	o := watermill.IntakeOptions{Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler)}
	intake, err := watermill.NewIntake(there.bus, topic, all, o)
	return intake, subscriber, err
}

// straight puts nothing between.
func straight(s message.Subscriber) message.Subscriber { return s }
