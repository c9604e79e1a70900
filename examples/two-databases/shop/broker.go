package shop

import (
	"context"
	"time"

	jetstream "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/nats-io/nats.go"
)

var topics = []string{contract.Orders, contract.Payments, contract.OrderEvents}

// ackWait is after how long the broker gives a message to another subscriber when it hears nothing of it. It is short,
// so that what a killed worker had in hand comes again soon.
const ackWait = 5 * time.Second

// publishWait is how long a relay waits for the broker to say that it has a message. A node that dies says nothing.
const publishWait = time.Second

// inHand is how many messages of a topic a worker takes at a time: watermill-nats waits for the ack of one before it
// takes the next. They come in no order, which is enough here: no order has two messages of one topic on their way.
// docs/guide/brokers.md keeps the order.
const inHand = 16

// provision makes the streams and their consumers, as a deployment would. A stream is kept by all nodes of a cluster of
// three, so that what the broker has taken outlives any one of them. One service reads each topic here, so a message
// goes when it was acked.
func provision(ctx context.Context, c *cluster.Cluster) error {
	for _, topic := range topics {
		if err := c.CreateStream(ctx, topic, cluster.StreamOptions{Replicas: c.Nodes(), Queue: true}); err != nil {
			return err
		}
		if err := c.CreateConsumer(ctx, topic, topic,
			cluster.ConsumerOptions{AckWait: ackWait, Push: true}); err != nil {
			return err
		}
	}
	return nil
}

// held counts the messages that the broker has, given to somebody or not.
func held(ctx context.Context, c *cluster.Cluster) (sum uint64, err error) {
	for _, topic := range topics {
		n, _, err := c.Messages(ctx, topic)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// reconnecting are the settings of a connection that outlives any fault of the broker. What nats.go does by default is
// meant for a broker that is away for seconds.
func reconnecting() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), // the default gives up after 60 tries, for ever
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.RetryOnFailedConnect(true),    // a service may start before the broker does
		nats.PingInterval(2 * time.Second), // a node that hangs is noticed in four seconds, not in four minutes
	}
}

// publisher is Watermill's publisher of JetStream. Publish returns when the broker has the message.
//
// The broker could drop what a relay gives it twice (TrackMsgId), for as long as it remembers ids. That is left off
// here, so that the inbox has something to do.
func publisher(url, name string) (message.Publisher, error) {
	return jetstream.NewPublisher(jetstream.PublisherConfig{
		URL: url, NatsOptions: append(reconnecting(), nats.Name(name),
			// what is given while no node is there fails at once, and does not go out behind the relay's back
			nats.ReconnectBufSize(-1)),
		JetStream: jetstream.JetStreamConfig{ConnectOptions: []nats.JSOpt{nats.MaxWait(publishWait)}},
	}, nil)
}

// subscriber makes a Watermill subscriber of JetStream for each topic, with a connection of its own.
//
// Its consumer exists already, and is found by its name: nats.go deletes one that it made itself when the first of
// those who share it leaves. And it is closed when the subscription ends: watermill-nats closes the channel when the
// context ends, and only Close tells it before not to send into that any more.
type subscriber struct{ url, name string }

// Subscribe is Watermill's.
func (s subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	conn, err := nats.Connect(s.url, append(reconnecting(), nats.Name(s.name))...)
	if err != nil {
		return nil, err
	}
	sub, err := jetstream.NewSubscriberWithNatsConn(conn, jetstream.SubscriberSubscriptionConfig{
		QueueGroupPrefix: topic, SubscribersCount: inHand, AckWaitTimeout: ackWait, CloseTimeout: ackWait,
		JetStream: jetstream.JetStreamConfig{
			DurablePrefix: topic, SubscribeOptions: []nats.SubOpt{nats.ManualAck()},
			AckAsync: true, // an ack that is lost costs one more delivery, which the inbox knows
		},
	}, nil)
	if err != nil {
		conn.Close()
		return nil, err
	}
	messages, err := sub.Subscribe(context.WithoutCancel(ctx), topic)
	if err != nil {
		conn.Close()
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = sub.Close() })
	return messages, nil
}

// Close is Watermill's. Subscriptions end with their contexts.
func (subscriber) Close() error { return nil }
