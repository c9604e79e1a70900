package broker

import (
	"context"
	"fmt"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Topics are the streams, and their consumers.
var Topics = []string{contract.Orders, contract.Payments, contract.OrderEvents}

// AckWait is the time without an ack after which the broker redelivers a message. It is short, so that the messages of
// a killed worker are redelivered soon.
const AckWait = 5 * time.Second

// publishWait is how long a relay waits for the broker to acknowledge a message. A node that dies sends no answer.
const publishWait = time.Second

// inHand is how many messages of a topic a worker takes at a time: watermill-nats waits for the ack of one before it
// takes the next. They come in no order, which is enough here: no order has two messages of one topic on their way.
// docs/guide/brokers.md keeps the order.
const inHand = 16

// Provision makes the streams and their consumers, as a deployment would. One service reads each topic here, so a
// message goes when it was acked.
func Provision(ctx context.Context, url string) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	for _, topic := range Topics {
		stream := jetstream.StreamConfig{Name: topic, Subjects: []string{topic}, Retention: jetstream.WorkQueuePolicy}
		if _, err := js.CreateOrUpdateStream(ctx, stream); err != nil {
			return fmt.Errorf("make stream %s: %w", topic, err)
		}
		consumer := jetstream.ConsumerConfig{Durable: topic, AckPolicy: jetstream.AckExplicitPolicy, AckWait: AckWait,
			DeliverSubject: "deliver." + topic, DeliverGroup: topic}
		if _, err := js.CreateOrUpdatePushConsumer(ctx, topic, consumer); err != nil {
			return fmt.Errorf("make a consumer of stream %s: %w", topic, err)
		}
	}
	return nil
}

// reconnecting returns the settings of a connection that outlives any fault of the broker. The defaults of nats.go are
// for a broker that is away for seconds.
func reconnecting() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), // the default gives up after 60 tries, for ever
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.RetryOnFailedConnect(true),    // a service may start before the broker does
		nats.PingInterval(2 * time.Second), // a node that hangs is noticed in four seconds, not in four minutes
	}
}

// NewPublisher is Watermill's publisher of JetStream. Publish returns when the broker has the message.
//
// The broker could drop a message that a relay publishes twice (TrackMsgId), for as long as it remembers ids. That is
// left off here, so that the inbox has duplicates to drop.
func NewPublisher(url, name string) (message.Publisher, error) {
	return wmnats.NewPublisher(wmnats.PublisherConfig{
		URL: url, NatsOptions: append(reconnecting(), nats.Name(name),
			// without a node, Publish fails at once instead of buffering a message that the relay would not track
			nats.ReconnectBufSize(-1)),
		JetStream: wmnats.JetStreamConfig{ConnectOptions: []nats.JSOpt{nats.MaxWait(publishWait)}},
	}, nil)
}

// Subscriber makes a Watermill subscriber of JetStream for each topic, with a connection of its own.
//
// Its consumer exists already, and is found by its name: nats.go deletes a consumer that it made itself when the first
// of the subscribers that share it leaves. Subscribe closes it when the subscription ends: watermill-nats closes the
// channel when the context ends, and only Close first stops it from sending to that channel.
type Subscriber struct{ URL, Name string }

// Subscribe is Watermill's.
func (s Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	conn, err := nats.Connect(s.URL, append(reconnecting(), nats.Name(s.Name))...)
	if err != nil {
		return nil, err
	}
	sub, err := wmnats.NewSubscriberWithNatsConn(conn, wmnats.SubscriberSubscriptionConfig{
		QueueGroupPrefix: topic, SubscribersCount: inHand, AckWaitTimeout: AckWait, CloseTimeout: AckWait,
		JetStream: wmnats.JetStreamConfig{
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
func (Subscriber) Close() error { return nil }
