package main

import (
	"context"
	"errors"
	"strings"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/examples/remote/contract"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	stock "github.com/nats-io/nats.go/jetstream"
)

const (
	ackWait = 5 * time.Second // longer than an invoice takes; after it a message of a killed process comes again
	inHand  = 8               // messages of a topic at a time

	nackPause = time.Second
)

// consumer is the name of the durable consumer of a topic. A dot may not be in it.
func consumer(topic string) string { return strings.ReplaceAll(topic, ".", "_") }

// startBroker runs a server in this process, which keeps its streams in a folder. A real one is a cluster of three.
func startBroker(folder string) (url string, stop func(), err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: folder, NoSigs: true, NoLog: true})
	if err != nil {
		return "", nil, err
	}
	go s.Start()
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	if !s.ReadyForConnections(10 * time.Second) {
		stop()
		return "", nil, errors.New("the broker did not come up")
	}
	return s.ClientURL(), stop, nil
}

// provision makes the stream and its consumers, as a deployment would. docs/guide/brokers.md has the settings.
func provision(ctx context.Context, url string) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := stock.New(conn)
	if err != nil {
		return err
	}
	topics := []string{contract.Invoices, contract.Runs}
	stream := stock.StreamConfig{Name: contract.Stream, Subjects: topics, Retention: stock.WorkQueuePolicy}
	if _, err := js.CreateOrUpdateStream(ctx, stream); err != nil {
		return err
	}
	for _, topic := range topics {
		o := stock.ConsumerConfig{Durable: consumer(topic), FilterSubject: topic, AckPolicy: stock.AckExplicitPolicy,
			AckWait: ackWait, DeliverSubject: "deliver." + topic, DeliverGroup: consumer(topic)}
		if _, err := js.CreateOrUpdatePushConsumer(ctx, contract.Stream, o); err != nil {
			return err
		}
	}
	return nil
}

// link is a process's access to the broker.
type link struct {
	publisher message.Publisher
	subscribe func() (message.Subscriber, error) // with a connection of its own
	close     func()
}

// connect makes a publisher. The stream drops a message whose UUID it has stored within the last two minutes. connect
// succeeds while the broker is away.
func connect(url string) (link, error) {
	conn, err := jetstream.Connect(url)
	if err != nil {
		return link{}, err
	}
	publisher, err := jetstream.NewPublisher(conn, jetstream.PublisherOptions{})
	if err != nil {
		conn.Close()
		return link{}, err
	}
	return link{publisher, func() (message.Subscriber, error) { return newSubscriber(url) }, conn.Close}, nil
}

// subscriber gives out several messages at a time, in no order. Its Close ends its connection, and so a publisher needs
// a separate connection.
type subscriber struct {
	*wmnats.Subscriber
	conn *nats.Conn
}

func newSubscriber(url string) (message.Subscriber, error) {
	conn, err := jetstream.Connect(url)
	if err != nil {
		return nil, err
	}
	s, err := wmnats.NewSubscriberWithNatsConn(conn, wmnats.SubscriberSubscriptionConfig{
		SubscribersCount: inHand, AckWaitTimeout: ackWait,
		CloseTimeout: time.Second, // less than the Router's: a message that arrives during a Close waits for its end
		// a nacked message comes again after a pause: while the database is away it would spin
		NakDelay: wmnats.NewStaticDelay(nackPause),
		SubjectCalculator: func(_, topic string) *wmnats.SubjectDetail {
			return &wmnats.SubjectDetail{Primary: topic, QueueGroup: consumer(topic)}
		},
		JetStream: wmnats.JetStreamConfig{
			AckAsync: true, // an ack that is lost costs one more delivery
			// the consumer exists already, and outlives its subscribers
			DurableCalculator: func(_, topic string) string { return consumer(topic) },
			SubscribeOptions:  []nats.SubOpt{nats.BindStream(contract.Stream), nats.ManualAck()},
		},
	}, nil)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return subscriber{s, conn}, nil
}

func (s subscriber) Close() error {
	defer s.conn.Close()
	return s.Subscriber.Close()
}
