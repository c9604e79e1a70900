package jetstream_test

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// A deployment makes both before: a stream that accepts batches, and a consumer that keeps order and place.
func ExampleConsumerConfig() {
	prepare := func(ctx context.Context, js natsjs.JetStream) error {
		_, err := js.CreateOrUpdateStream(ctx, natsjs.StreamConfig{
			Name: "shop", Subjects: []string{"shop.events"}, Replicas: 3, AllowAtomicPublish: true,
		})
		if err != nil {
			return err
		}
		_, err = js.CreateOrUpdateConsumer(ctx, "shop", jetstream.ConsumerConfig(jetstream.ConsumerName("shop.events")))
		return err
	}
	_ = prepare
}

// A relay publishes its messages to JetStream, a batch at a time.
func ExampleNewPublisher() {
	relay := func(ctx context.Context, b *bus.Bus) error {
		conn, err := jetstream.Connect("nats://n1:4222,nats://n2:4222,nats://n3:4222")
		if err != nil {
			return err
		}
		defer conn.Close()
		publisher, err := jetstream.NewPublisher(conn, jetstream.PublisherOptions{})
		if err != nil {
			return err
		}
		r, err := watermill.NewRelay(b, "shop.events", publisher, watermill.RelayOptions{}, "order.paid",
			"order.cancelled")
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}
	_ = relay
}

// An intake writes the messages in hand in one transaction.
func ExampleNewSubscriber() {
	intake := func(ctx context.Context, b *bus.Bus) error {
		conn, err := jetstream.Connect("nats://n1:4222,nats://n2:4222,nats://n3:4222")
		if err != nil {
			return err
		}
		defer conn.Close()
		subscriber, err := jetstream.NewSubscriber(conn, jetstream.SubscriberOptions{Stream: "shop"})
		if err != nil {
			return err
		}
		in, err := watermill.NewIntake(b, "shop.events", subscriber, watermill.IntakeOptions{Endpoint: "billing"})
		if err != nil {
			return err
		}
		return in.Run(ctx)
	}
	_ = intake
}
