//go:build rabbitmq

package brokers

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
	amqp "github.com/rabbitmq/amqp091-go"
)

func rabbitPublisher(t *testing.T, b *rabbit.Broker, o RabbitMQOptions) message.Publisher {
	t.Helper()
	return opened[message.Publisher](t)(NewRabbitMQPublisher(b.URL(), o, nil))
}

func rabbitSubscriber(t *testing.T, b *rabbit.Broker, o RabbitMQOptions) *wmamqp.Subscriber {
	t.Helper()
	return opened[*wmamqp.Subscriber](t)(NewRabbitMQSubscriber(b.URL(), o, nil))
}

// oneQueue is a publisher to a queue of its own, and what it gives.
type oneQueue struct {
	pipe
	subscriber *wmamqp.Subscriber
	channel    *amqp.Channel // for what Watermill has no words for
}

func newQueue(t *testing.T, b *rabbit.Broker, o RabbitMQOptions) *oneQueue {
	t.Helper()
	q := &oneQueue{pipe: pipe{T: t, name: "q." + watermill.NewShortUUID(), out: rabbitPublisher(t, b, o)},
		subscriber: rabbitSubscriber(t, b, o), channel: openChannel(t, b)}
	q.in = subscribe(t, q.subscriber, q.name)
	return q
}

func openChannel(t *testing.T, b *rabbit.Broker) *amqp.Channel {
	t.Helper()
	conn, err := b.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

const maxMessage = 1 << 20

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	b := rabbit.New(t, rabbit.Options{Settings: map[string]string{"max_message_size": fmt.Sprint(maxMessage)}})
	for name, f := range map[string]func(*testing.T, *rabbit.Broker){
		"carries a message unchanged":                 rabbitCarries,
		"obeys no author":                             rabbitObeysNoAuthor,
		"takes in headers of any type":                rabbitTakesAnyType,
		"refuses a message of no queue":               rabbitRefusesUnroutable,
		"keeps the order after a nack":                rabbitKeepsOrder,
		"gives a message again for ever":              rabbitGivesAgain,
		"has one reader, and one that stands by":      rabbitStandsBy,
		"refuses a message of a full queue":           rabbitRefusesFull,
		"refuses what it can never take":              rabbitUnfit,
		"gives nothing after the end of a consumer":   rabbitGivesNoPhantom,
		"does not subscribe to a queue of other ways": rabbitRefusesOtherQueue,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, b) })
	}
}

func rabbitCarries(t *testing.T, b *rabbit.Broker) {
	sent := newQueue(t, b, RabbitMQOptions{}).carries(message.Metadata{"Case-Kept": "Grüße", "note": " two\r\nlines ",
		"a name": "x"})
	p, err := rabbitMarshaler{maxMessage}.Marshal(sent)
	if err != nil || p.MessageId != sent.UUID || p.DeliveryMode != amqp.Persistent {
		t.Errorf("the message's properties are id %s, delivery mode %d: %v", p.MessageId, p.DeliveryMode, err)
	}
}

// CC and BCC name further queues. As texts, which is all that a header of Watermill is, RabbitMQ refuses them with the
// end of the channel.
func rabbitObeysNoAuthor(t *testing.T, b *rabbit.Broker) {
	q := newQueue(t, b, RabbitMQOptions{})
	sent := message.NewMessage(watermill.NewUUID(), nil)
	for _, name := range []string{"CC", "BCC", "cc", "Bcc", "x-delay", "X-Death", wmamqp.MetadataRedeliveredKey} {
		sent.Metadata.Set(name, q.name)
	}
	sent.Metadata.Set("kept", "1")
	if err := q.out.Publish(q.name, sent); err != nil {
		t.Fatal(err)
	}
	if got := q.next(); len(got.Metadata) != 1 || got.Metadata.Get("kept") != "1" {
		t.Errorf("the headers arrived as %v", got.Metadata)
	}
	err := q.channel.Confirm(false)
	if err != nil {
		t.Fatal(err)
	}
	ended := q.channel.NotifyClose(make(chan *amqp.Error, 1))
	if err := q.channel.Publish("", q.name, false, false,
		amqp.Publishing{Headers: amqp.Table{"CC": "other"}}); err != nil {
		t.Fatal(err)
	}
	if end := <-ended; end == nil || end.Code != amqp.PreconditionFailed {
		t.Errorf("CC as a text: %v, want the end of the channel", end)
	}
}

func rabbitTakesAnyType(t *testing.T, b *rabbit.Broker) {
	q := newQueue(t, b, RabbitMQOptions{})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := q.channel.Publish("", q.name, false, false, amqp.Publishing{MessageId: "m1", Headers: amqp.Table{
		"text": "a", "bytes": []byte("b"), "yes": true, "small": int8(-3), "big": int64(1 << 40), "half": 0.5,
		"none": nil, "at": at, "list": []any{"x", int32(1)}, "table": amqp.Table{"k": "v"},
		"money": amqp.Decimal{Scale: 2, Value: 314},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := q.next()
	want := message.Metadata{"text": "a", "bytes": "b", "yes": "true", "small": "-3", "big": "1099511627776",
		"half": "0.5", "none": "", "at": "2026-01-02T03:04:05Z", "list": `["x",1]`, "table": `{"k":"v"}`,
		"money": `{"Scale":2,"Value":314}`}
	if got.UUID != "m1" || !maps.Equal(got.Metadata, want) {
		t.Errorf("got  %s %v\nwant m1 %v", got.UUID, got.Metadata, want)
	}
}

func rabbitRefusesUnroutable(t *testing.T, b *rabbit.Broker) {
	name := "late." + watermill.NewShortUUID()
	o := RabbitMQOptions{Exchange: name + ".exchange"} // of its own: nothing has been refused before
	publisher := rabbitPublisher(t, b, o)
	m := message.NewMessage(watermill.NewUUID(), nil)
	for range 3 {
		passes(t, "no queue is there", publisher.Publish(name, m))
	}
	messages := subscribe(t, rabbitSubscriber(t, b, o), name)
	if err := publisher.Publish(name, m); err != nil {
		t.Error(err)
	}
	got := receive(t, messages)
	got.Ack()
	if got.UUID != m.UUID {
		t.Errorf("message %s came, want %s", got.UUID, m.UUID)
	}
}

func rabbitKeepsOrder(t *testing.T, b *rabbit.Broker) { newQueue(t, b, RabbitMQOptions{}).keepsOrder() }

// RabbitMQ 4 drops a message of a quorum queue that it has given 20 times, unless it is told otherwise.
func rabbitGivesAgain(t *testing.T, b *rabbit.Broker) {
	q := newQueue(t, b, RabbitMQOptions{})
	q.mustPublish("a")
	for range 100 {
		receive(t, q.in).Nack()
	}
	if m := q.next(); string(m.Payload) != "a" {
		t.Errorf("message %q came", m.Payload)
	}
}

// A second process of an application takes over, and does not share the messages of a key with the first. Both are
// offered to the same reader here, which notes whose each message is.
func rabbitStandsBy(t *testing.T, b *rabbit.Broker) {
	q := newQueue(t, b, RabbitMQOptions{})
	second := subscribe(t, rabbitSubscriber(t, b, RabbitMQOptions{}), q.name)
	var story strings.Builder
	read := func(n int) {
		for range n {
			select {
			case m := <-q.in:
				story.Write(m.Payload)
				m.Ack()
			case m := <-second:
				story.WriteString(strings.ToUpper(string(m.Payload)))
				m.Ack()
			case <-time.After(soon):
				t.Fatalf("%q came, and nothing more", story.String())
			}
		}
	}
	q.mustPublish("a", "b", "c", "d", "e", "f")
	read(6)
	if err := q.subscriber.Close(); err != nil {
		t.Fatal(err)
	}
	for range q.in { // until it is closed
	}
	q.in = nil
	q.mustPublish("g", "h")
	read(2)
	if story.String() != "abcdefGH" {
		t.Errorf("%s came, want abcdef to the first and GH to the second", story.String())
	}
}

func rabbitRefusesFull(t *testing.T, b *rabbit.Broker) {
	o := RabbitMQOptions{Arguments: amqp.Table{"x-max-length": int32(3)}}
	q := newQueue(t, b, o)
	first := receive(t, filled(q))
	if string(first.Payload) != "0" {
		t.Errorf("message %q is the first of a full queue, want 0", first.Payload)
	}
}

// filled publishes until the queue refuses.
func filled(q *oneQueue) <-chan *message.Message {
	q.Helper()
	for n := range 100 {
		if err := q.publish(fmt.Sprint(n)); err != nil {
			passes(q.T, "a full queue", err)
			return q.in
		}
	}
	q.Fatal("100 messages are in a queue for 3")
	return nil
}

func rabbitUnfit(t *testing.T, b *rabbit.Broker) {
	q := newQueue(t, b, RabbitMQOptions{MaxMessage: maxMessage})
	large, longName, wide := message.NewMessage("1", make([]byte, maxMessage+1)), message.NewMessage("2", nil),
		message.NewMessage("3", nil)
	longName.Metadata.Set(strings.Repeat("n", 256), "")
	for n := range 20 {
		wide.Metadata.Set(fmt.Sprint(n), strings.Repeat("x", 8<<10))
	}
	for what, m := range map[string]*message.Message{"max_message_size": large, "a name": longName, "a frame": wide} {
		unfit(t, "beyond "+what, q.out.Publish(q.name, m))
	}
	edge := message.NewMessage("4", make([]byte, maxMessage))
	edge.Metadata.Set(strings.Repeat("n", 255), strings.Repeat("x", rabbitHeaders-300))
	if err := q.out.Publish(q.name, edge); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if got := q.next(); len(got.Payload) != maxMessage || !maps.Equal(got.Metadata, edge.Metadata) {
		t.Errorf("%d bytes and %d headers came", len(got.Payload), len(got.Metadata))
	}
	// The broker says no as well, and watermill-amqp not why.
	passes(t, "beyond max_message_size, which the publisher was not told",
		rabbitPublisher(t, b, RabbitMQOptions{}).Publish(q.name, large))
}

// When a consumer is cancelled, watermill-amqp reads empty messages from its closed channel.
func rabbitGivesNoPhantom(t *testing.T, b *rabbit.Broker) {
	if m, err := (rabbitMarshaler{}).Unmarshal(amqp.Delivery{}); err == nil {
		t.Errorf("nothing became message %+v", m)
	}
	q := newQueue(t, b, RabbitMQOptions{})
	for n := range 5 {
		if _, err := q.channel.QueueDelete(q.name, false, false, false); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(n)
		for begin := time.Now(); q.publish(want) != nil; { // until the subscriber has declared the queue again
			select {
			case m := <-q.in:
				t.Fatalf("message %q came with id %q, and none was there", m.Payload, m.UUID)
			default:
			}
			if time.Since(begin) > soon {
				t.Fatal("the subscriber does not come back")
			}
		}
		if m := q.next(); string(m.Payload) != want {
			t.Fatalf("message %q came with id %q, want %q", m.Payload, m.UUID, want)
		}
	}
}

func rabbitRefusesOtherQueue(t *testing.T, b *rabbit.Broker) {
	name := "other." + watermill.NewShortUUID()
	if _, err := openChannel(t, b).QueueDeclare(name, true, false, false, false,
		amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := rabbitSubscriber(t, b, RabbitMQOptions{}).Subscribe(ctx, name); err == nil {
		t.Error("Subscribe takes a queue without a delivery limit")
	}
}

// A broker that is away is an error, soon, which is not the message's. So is one that does not answer.
func TestRabbitMQThatIsAwayIsAnErrorThatPasses(t *testing.T) {
	t.Parallel()
	b := rabbit.New(t, rabbit.Options{})
	patient := RabbitMQOptions{Heartbeat: time.Minute, AckWait: time.Second}
	waits, beats := newQueue(t, b, patient), newQueue(t, b, RabbitMQOptions{Heartbeat: time.Second, AckWait: time.Hour})
	for _, q := range []*oneQueue{waits, beats} {
		q.mustPublish("a")
		q.next()
	}
	fails := func(why string) {
		for _, q := range []*oneQueue{waits, beats} {
			failed := make(chan error, 1)
			go func() { failed <- q.publish("b") }()
			select {
			case err := <-failed:
				passes(t, why, err)
			case <-time.After(10 * time.Second): // with amqp091's own heartbeat it takes 15
				t.Errorf("%s: Publish does not return", why)
			}
		}
	}
	works := func() {
		for _, q := range []*oneQueue{waits, beats} {
			q.works()
			for string(q.next().Payload) != "c" { // what was sent before may come
			}
		}
	}
	if err := b.AwaitKept(t.Context(), waits.name, beats.name); err != nil {
		t.Fatal(err)
	}
	b.Freeze(0)
	fails("the broker is frozen")
	if err := b.Thaw(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	works()
	inClassicQueue(t, b, "classic")
	if err := b.Kill(0); err != nil {
		t.Fatal(err)
	}
	fails("the broker is gone")
	_, err := NewRabbitMQPublisher(b.URL(), patient, nil)
	passes(t, "no broker listens", err)
	if err := b.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	works()
	if n, err := b.Ready("classic"); err != nil || n != 1 {
		t.Errorf("%d messages are kept in a classic queue, want 1: %v", n, err)
	}
}

// inClassicQueue publishes a message to a classic queue, which keeps what is persistent over a crash of its node. One
// of quorum keeps everything.
func inClassicQueue(t *testing.T, b *rabbit.Broker, name string) {
	t.Helper()
	publisher, channel := rabbitPublisher(t, b, RabbitMQOptions{}), openChannel(t, b)
	if _, err := channel.QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := channel.QueueBind(name, name, "edda", false, nil); err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish(name, message.NewMessage("1", nil)); err != nil {
		t.Fatal(err)
	}
}
