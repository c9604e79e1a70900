package watermill_test

import (
	"context"
	"fmt"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
)

// The examples use a bus on a Postgres with the tables of Edda, and a broker.
func openBus() (ctx context.Context, b *bus.Bus, end func()) {
	ctx, pool, end := pgtest.Example()
	b, err := bus.New(pool, bus.Options{AutoInstall: true})
	check(err)
	return ctx, b, end
}

var check, start = pgtest.Must, pgtest.Start

// newBroker is Watermill's broker in memory.
func newBroker() *gochannel.GoChannel {
	return gochannel.NewGoChannel(gochannel.Config{Persistent: true, OutputChannelBuffer: 10}, wm.NopLogger{})
}

// A message that a Watermill program publishes is an event, which an endpoint handles as any other.
func ExampleNewPublisher() {
	ctx, b, end := openBus()
	defer end()
	seen := make(chan string)
	read := func(_ *bus.Context, d *saga.Delivery) error {
		seen <- d.Info.Kind + " " + string(d.Body)
		return nil
	}
	letters, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, bus.HandleRaw(read, "order.paid"))
	check(err)
	defer start(ctx, letters)()

	publisher, err := watermill.NewPublisher(b, watermill.PublisherOptions{})
	check(err)
	check(publisher.Publish("order.paid", message.NewMessage(wm.NewUUID(), []byte(`{"order":"7"}`))))
	fmt.Println(<-seen)
	check(publisher.Close())
	// Output: order.paid {"order":"7"}
}

// A Watermill program receives the events of a kind, here with a queue of its own.
func ExampleNewSubscriber() {
	ctx, b, end := openBus()
	defer end()
	subscriber, err := watermill.NewSubscriber(b, watermill.SubscriberOptions{ConsumerGroup: "letters"})
	check(err)
	messages, err := subscriber.Subscribe(ctx, "order.paid") // or router.AddConsumerHandler, with subscriber
	check(err)

	_, err = b.Publish(ctx, saga.Raw{Name: "order.paid", Body: []byte(`{"order":"7"}`)})
	check(err)
	m := <-messages
	fmt.Println(string(m.Payload))
	m.Ack()
	check(subscriber.Close())
	// Output: {"order":"7"}
}

// A relay publishes messages to any Watermill publisher, in their order.
func ExampleNewRelay() {
	ctx, b, end := openBus()
	defer end()
	broker := newBroker()
	relay, err := watermill.NewRelay(b, "broker", broker, watermill.RelayOptions{Topic: "orders"}, "order.paid")
	check(err)
	defer start(ctx, relay)()

	messages, err := broker.Subscribe(ctx, "orders")
	check(err)
	_, err = b.Publish(ctx, saga.Raw{Name: "order.paid", Body: []byte(`{"order":"7"}`)})
	check(err)
	m := <-messages
	fmt.Println(string(m.Payload))
	m.Ack()
	check(broker.Close())
	// Output: {"order":"7"}
}

// An intake ingests the messages of any Watermill subscriber, each id once.
func ExampleNewIntake() {
	ctx, b, end := openBus()
	defer end()
	seen := make(chan string)
	read := func(_ *bus.Context, d *saga.Delivery) error {
		seen <- string(d.Body)
		return nil
	}
	letters, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, bus.HandleRaw(read, "order.paid"))
	check(err)
	defer start(ctx, letters)()

	broker := newBroker()
	intake, err := watermill.NewIntake(b, "order.paid", broker, watermill.IntakeOptions{})
	check(err)
	defer start(ctx, intake)()
	for _, id := range []string{"id-1", "id-1", "id-2"} {
		check(broker.Publish("order.paid", message.NewMessage(id, []byte("of "+id))))
	}
	came := map[string]int{}
	came[<-seen]++
	came[<-seen]++
	fmt.Println(came)
	// Output: map[of id-1:1 of id-2:1]
}
