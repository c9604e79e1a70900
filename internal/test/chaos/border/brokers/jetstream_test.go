package brokers

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// soon is far longer than any of these waits takes.
const soon = 30 * time.Second

func jetStreamPublisher(t *testing.T, c *cluster.Cluster, o JetStreamOptions) *wmnats.Publisher {
	t.Helper()
	publisher, err := NewJetStreamPublisher(c.URL(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	return publisher
}

func jetStreamSubscriber(t *testing.T, c *cluster.Cluster, o ConsumerOf) *wmnats.Subscriber {
	t.Helper()
	subscriber, err := NewJetStreamSubscriber(c.URL(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = subscriber.Close() })
	return subscriber
}

func subscribe(t *testing.T, s message.Subscriber, topic string) <-chan *message.Message {
	t.Helper()
	messages, err := s.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatalf("subscribe to %s: %v", topic, err)
	}
	return messages
}

func receive(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	select {
	case m, open := <-messages:
		if !open {
			t.Fatal("the channel is closed, want a message")
		}
		return m
	case <-time.After(soon):
		t.Fatalf("no message in %v", soon)
	}
	return nil
}

func create(t *testing.T, c *cluster.Cluster, stream string, o cluster.StreamOptions) {
	t.Helper()
	if err := c.CreateStream(t.Context(), stream, o); err != nil {
		t.Fatal(err)
	}
}

func consumer(t *testing.T, c *cluster.Cluster, stream, name, subject string) {
	t.Helper()
	o := cluster.ConsumerOptions{Subject: subject, MaxPending: 1, Push: true, AckWait: 2 * time.Second}
	if err := c.CreateConsumer(t.Context(), stream, Consumer(name, subject), o); err != nil {
		t.Fatal(err)
	}
}

func TestAMessageCrossesJetStreamUnchanged(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{Subjects: []string{"orders.paid"}})
	consumer(t, c, "orders", "shop", "orders.paid")
	sent := message.NewMessage(watermill.NewUUID(), []byte("{\"é\": \"\x00\xff\"}"))
	sent.Metadata = message.Metadata{"edda_kind": "order.paid", ConversationKey: "c1", "Case-Kept": "Grüße",
		"empty": ""}
	if err := jetStreamPublisher(t, c, JetStreamOptions{}).Publish("orders.paid", sent); err != nil {
		t.Fatal(err)
	}
	got := receive(t, subscribe(t, jetStreamSubscriber(t, c, ConsumerOf{Stream: "orders", Name: "shop"}),
		"orders.paid"))
	got.Ack()
	if got.UUID != sent.UUID || string(got.Payload) != string(sent.Payload) ||
		!maps.Equal(got.Metadata, sent.Metadata) {
		t.Errorf("sent %s %v %q\ngot  %s %v %q", sent.UUID, sent.Metadata, sent.Payload, got.UUID, got.Metadata,
			got.Payload)
	}
}

// Headers that begin with Nats- are orders to the server. This one has the message refused, others empty the stream.
func TestJetStreamTakesNoOrdersFromAnAuthor(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	publisher := jetStreamPublisher(t, c, JetStreamOptions{})
	for _, name := range []string{"Nats-Expected-Stream", "nats-expected-stream"} {
		m := message.NewMessage(watermill.NewUUID(), nil)
		m.Metadata.Set(name, "another")
		if err := publisher.Publish("orders", m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What NATS cannot carry in a header is changed on the way without an error: Edda's own headers have nothing of it.
func TestJetStreamChangesLineEndsAndOuterSpacesOfHeaders(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	consumer(t, c, "orders", "shop", "orders")
	sent := message.NewMessage(watermill.NewUUID(), nil)
	sent.Metadata.Set("note", " two\r\nlines ")
	publisher := jetStreamPublisher(t, c, JetStreamOptions{})
	if err := publisher.Publish("orders", sent); err != nil {
		t.Fatal(err)
	}
	got := receive(t, subscribe(t, jetStreamSubscriber(t, c, ConsumerOf{Stream: "orders", Name: "shop"}), "orders"))
	got.Ack()
	if note := got.Metadata.Get("note"); note != "two  lines" {
		t.Errorf("the header arrived as %q", note)
	}
	bad := message.NewMessage(watermill.NewUUID(), nil)
	bad.Metadata.Set("a name", "x")
	if err := publisher.Publish("orders", bad); !Unfit(err) {
		t.Errorf("a header's name with a space: %v, want an error that no waiting helps", err)
	}
}

func TestARepeatInsideTheWindowIsDroppedByJetStreamAndOtherwiseNot(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	m := message.NewMessage(watermill.NewUUID(), []byte("{}"))
	for _, o := range []JetStreamOptions{{}, {NoMsgID: true}} {
		publisher := jetStreamPublisher(t, c, o)
		for range 3 {
			if err := publisher.Publish("orders", m); err != nil {
				t.Fatal(err)
			}
		}
		want := uint64(1)
		if o.NoMsgID {
			want = 4
		}
		if held, _, err := c.Messages(t.Context(), "orders"); err != nil || held != want {
			t.Errorf("NoMsgID %v: the stream holds %d messages, want %d: %v", o.NoMsgID, held, want, err)
		}
	}
}

func TestUnfitKnowsWhatNoWaitingHelps(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{MaxPayload: 4096})
	create(t, c, "orders", cluster.StreamOptions{})
	publisher := jetStreamPublisher(t, c, JetStreamOptions{AckWait: time.Second})
	publish := func(topic string, size int) error {
		return publisher.Publish(topic, message.NewMessage(watermill.NewUUID(), make([]byte, size)))
	}
	if err := publish("orders", 4096); !Unfit(err) { // its headers come on top
		t.Errorf("beyond max_payload: %v", err)
	}
	conn, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []jetstream.StreamConfig{
		{Name: "small", Subjects: []string{"small"}, MaxMsgSize: 1000},
		{Name: "full", Subjects: []string{"full"}, MaxBytes: 1000, Discard: jetstream.DiscardNew},
	} {
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if err := publish("small", 2000); !Unfit(err) {
		t.Errorf("beyond the max_msg_size of the stream: %v", err)
	}
	if err := publish("full", 2000); err == nil || Unfit(err) {
		t.Errorf("a full stream: %v, want an error that passes", err)
	}
	if err := publish("nowhere", 10); !errors.Is(err, nats.ErrNoStreamResponse) || Unfit(err) {
		t.Errorf("a subject of no stream: %v, want an error that passes", err)
	}
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := publish("orders", 10); err == nil || Unfit(err) {
		t.Errorf("a broker that is away: %v, want an error that passes", err)
	}
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(soon); ; {
		if err := publish("orders", 10); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the broker is back and publishing still fails: %v", err)
		}
	}
}

// A position in the stream has to outlive its reader. A consumer that was made beforehand does; one that Subscribe
// makes for a durable name is deleted when the subscription ends, and the next reader begins again.
func TestOnlyAConsumerMadeBeforehandOutlivesItsSubscription(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	publisher := jetStreamPublisher(t, c, JetStreamOptions{})
	for _, text := range []string{"first", "second"} {
		if err := publisher.Publish("orders", message.NewMessage(watermill.NewUUID(), []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		subscriber, err := NewJetStreamSubscriber(c.URL(),
			ConsumerOf{Stream: "orders", Name: name, AckWait: 2 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := receive(t, subscribe(t, subscriber, "orders"))
		m.Ack()
		text := string(m.Payload)
		if err := subscriber.Close(); err != nil {
			t.Fatal(err)
		}
		return text
	}
	consumer(t, c, "orders", "made", "orders")
	if first, second := read("made"), read("made"); first != "first" || second != "second" {
		t.Errorf("a consumer made beforehand gave %s, then %s", first, second)
	}
	if first, second := read("own"), read("own"); first != "first" || second != "first" {
		t.Errorf("watermill-nats' own consumer gave %s, then %s: it used to forget its place", first, second)
	}
}

// Producers that know nothing of Watermill give no UUID header.
func TestAForeignMessageHasAnID(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	consumer(t, c, "orders", "shop", "orders")
	conn, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	two := nats.Header{"Twice": {"a", "b"}} // the unmarshaler of watermill-nats refuses it, and it comes again for ever
	for _, msg := range []*nats.Msg{{Subject: "orders", Header: two},
		{Subject: "orders", Header: nats.Header{nats.MsgIdHdr: {"theirs"}}}} {
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	messages := subscribe(t, jetStreamSubscriber(t, c, ConsumerOf{Stream: "orders", Name: "shop"}), "orders")
	for _, want := range []string{"orders:1", "theirs"} {
		m := receive(t, messages)
		m.Ack()
		if m.UUID != want {
			t.Errorf("the id is %q, want %q", m.UUID, want)
		}
	}
}

// With one message in hand, those behind a nacked one wait for it.
func TestANackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	consumer(t, c, "orders", "shop", "orders")
	publisher := jetStreamPublisher(t, c, JetStreamOptions{})
	for _, text := range []string{"a", "b", "c"} {
		if err := publisher.Publish("orders", message.NewMessage(watermill.NewUUID(), []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	messages := subscribe(t, jetStreamSubscriber(t, c,
		ConsumerOf{Stream: "orders", Name: "shop", AckWait: 2 * time.Second}), "orders")
	var story strings.Builder
	for i := range 6 {
		m := receive(t, messages)
		story.Write(m.Payload)
		if i%2 == 0 {
			m.Nack()
		} else {
			m.Ack()
		}
	}
	if story.String() != "aabbcc" {
		t.Errorf("every message nacked once: %s, want aabbcc", story.String())
	}
}

// nats.go acknowledges for the handler unless it is told not to, and watermill-nats does not tell it.
func TestAMessageThatNobodyAnsweredComesAgain(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	consumer(t, c, "orders", "shop", "orders")
	m := message.NewMessage(watermill.NewUUID(), nil)
	if err := jetStreamPublisher(t, c, JetStreamOptions{}).Publish("orders", m); err != nil {
		t.Fatal(err)
	}
	// shorter than the consumer's
	patience := ConsumerOf{Stream: "orders", Name: "shop", AckWait: 200 * time.Millisecond}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, err := jetStreamSubscriber(t, c, patience).Subscribe(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	receive(t, first) // its time passes
	if again := receive(t, first); again.UUID != m.UUID {
		t.Errorf("message %s came, want %s again", again.UUID, m.UUID)
	}
	leave()           // with the message in hand
	for range first { // until it is closed
	}
	last := receive(t, subscribe(t, jetStreamSubscriber(t, c, ConsumerOf{Stream: "orders", Name: "shop"}), "orders"))
	last.Ack()
	if last.UUID != m.UUID {
		t.Errorf("message %s came to the next subscriber, want %s", last.UUID, m.UUID)
	}
}

// A second process of an application takes over, and does not take everything a second time. What the first had in hand
// when it left may come again: its acknowledgement may not have got out.
func TestTwoSubscribersOfANameShareAndTheSecondGoesOn(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	create(t, c, "orders", cluster.StreamOptions{})
	consumer(t, c, "orders", "shop", "orders")
	publisher := jetStreamPublisher(t, c, JetStreamOptions{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, err := jetStreamSubscriber(t, c, ConsumerOf{Stream: "orders", Name: "shop"}).Subscribe(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	second := subscribe(t, jetStreamSubscriber(t, c, ConsumerOf{Stream: "orders", Name: "shop"}), "orders")
	times, inHand := map[string]int{}, ""
	for i := range 20 {
		m := message.NewMessage(watermill.NewUUID(), nil)
		if err := publisher.Publish("orders", m); err != nil {
			t.Fatal(err)
		}
		for times[m.UUID] == 0 {
			var got *message.Message
			select {
			case got = <-first:
			case got = <-second:
			case <-time.After(soon):
				t.Fatalf("message %d came to nobody", i)
			}
			got.Ack()
			times[got.UUID]++
		}
		if i == 10 {
			inHand = m.UUID
			leave()
			for range first { // until it is closed
			}
			first = nil
		}
	}
	for id, n := range times {
		if n > 1 && id != inHand {
			t.Errorf("message %s came %d times", id, n)
		}
	}
	if len(times) != 20 {
		t.Errorf("%d messages came, want 20", len(times))
	}
}
