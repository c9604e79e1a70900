package brokers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func jetStreamPublisher(t *testing.T, c *cluster.Cluster, o JetStreamOptions) message.Publisher {
	t.Helper()
	return opened[*wmnats.Publisher](t)(NewJetStreamPublisher(c.URL(), o, nil))
}

func jetStreamSubscriber(t *testing.T, c *cluster.Cluster, o ConsumerOf) message.Subscriber {
	t.Helper()
	return opened[*wmnats.Subscriber](t)(NewJetStreamSubscriber(c.URL(), o, nil))
}

// ofShop is the subscriber of a stream's consumer.
func ofShop(t *testing.T, c *cluster.Cluster, stream string) message.Subscriber {
	t.Helper()
	return jetStreamSubscriber(t, c, ConsumerOf{Stream: stream, Name: "shop", AckWait: 2 * time.Second})
}

// newStream makes a stream of one subject, with a consumer of the application shop, and a publisher to it.
func newStream(t *testing.T, c *cluster.Cluster) *pipe {
	t.Helper()
	p := &pipe{T: t, name: "s_" + watermill.NewShortUUID()}
	if err := c.CreateStream(t.Context(), p.name, cluster.StreamOptions{}); err != nil {
		t.Fatal(err)
	}
	o := cluster.ConsumerOptions{Subject: p.name, MaxPending: 1, Push: true, AckWait: 2 * time.Second}
	if err := c.CreateConsumer(t.Context(), p.name, Consumer("shop", p.name), o); err != nil {
		t.Fatal(err)
	}
	p.out = jetStreamPublisher(t, c, JetStreamOptions{})
	return p
}

// newJetStream is newStream with a subscription.
func newJetStream(t *testing.T, c *cluster.Cluster) *pipe {
	t.Helper()
	p := newStream(t, c)
	p.in = subscribe(t, ofShop(t, c, p.name), p.name)
	return p
}

func connect(t *testing.T, c *cluster.Cluster) jetstream.JetStream {
	t.Helper()
	conn, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestJetStream(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	for name, f := range map[string]func(*testing.T, *cluster.Cluster){
		"carries a message unchanged": func(t *testing.T, c *cluster.Cluster) {
			newJetStream(t, c).carries(message.Metadata{"Case-Kept": "Grüße"})
		},
		"keeps the order after a nack": func(t *testing.T, c *cluster.Cluster) {
			newJetStream(t, c).keepsOrder()
		},
		"takes no orders from an author":                      natsObeysNoAuthor,
		"changes line ends and outer spaces of headers":       natsChangesHeaders,
		"drops a repeat inside the window":                    natsDropsRepeats,
		"forgets the place of a consumer that it has made":    natsForgetsOwnConsumer,
		"gives a foreign message an id":                       natsNamesForeign,
		"gives a message that nobody answered again":          natsGivesAgain,
		"shares messages between two subscribers of one name": natsShares,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, c) })
	}
}

// Headers that begin with Nats- are orders to the server. This one has the message refused, others empty the stream.
func natsObeysNoAuthor(t *testing.T, c *cluster.Cluster) {
	p := newStream(t, c)
	for _, name := range []string{"Nats-Expected-Stream", "nats-expected-stream"} {
		m := message.NewMessage(watermill.NewUUID(), nil)
		m.Metadata.Set(name, "another")
		if err := p.out.Publish(p.name, m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What NATS cannot carry in a header is changed on the way without an error: Edda's own headers have nothing of it.
func natsChangesHeaders(t *testing.T, c *cluster.Cluster) {
	p := newJetStream(t, c)
	sent := message.NewMessage(watermill.NewUUID(), nil)
	sent.Metadata.Set("note", " two\r\nlines ")
	if err := p.out.Publish(p.name, sent); err != nil {
		t.Fatal(err)
	}
	if note := p.next().Metadata.Get("note"); note != "two  lines" {
		t.Errorf("the header arrived as %q", note)
	}
	bad := message.NewMessage(watermill.NewUUID(), nil)
	bad.Metadata.Set("a name", "x")
	unfit(t, "a header's name with a space", p.out.Publish(p.name, bad))
}

func natsDropsRepeats(t *testing.T, c *cluster.Cluster) {
	p := newStream(t, c)
	m := message.NewMessage(watermill.NewUUID(), []byte("{}"))
	for _, o := range []JetStreamOptions{{}, {NoMsgID: true}} {
		publisher := jetStreamPublisher(t, c, o)
		for range 3 {
			if err := publisher.Publish(p.name, m); err != nil {
				t.Fatal(err)
			}
		}
		want := uint64(1)
		if o.NoMsgID {
			want = 4
		}
		if held, _, err := c.Messages(t.Context(), p.name); err != nil || held != want {
			t.Errorf("NoMsgID %v: the stream holds %d messages, want %d: %v", o.NoMsgID, held, want, err)
		}
	}
}

func TestUnfitKnowsWhatNoWaitingHelps(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{MaxPayload: 4096})
	p := newStream(t, c)
	p.out = jetStreamPublisher(t, c, JetStreamOptions{AckWait: time.Second})
	publish := func(topic string, size int) error {
		return p.out.Publish(topic, message.NewMessage(watermill.NewUUID(), make([]byte, size)))
	}
	unfit(t, "beyond max_payload", publish(p.name, 4096)) // its headers come on top
	js := connect(t, c)
	for _, config := range []jetstream.StreamConfig{
		{Name: "small", Subjects: []string{"small"}, MaxMsgSize: 1000},
		{Name: "full", Subjects: []string{"full"}, MaxBytes: 1000, Discard: jetstream.DiscardNew},
	} {
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	unfit(t, "beyond the max_msg_size of the stream", publish("small", 2000))
	passes(t, "a full stream", publish("full", 2000))
	if err := publish("nowhere", 10); !errors.Is(err, nats.ErrNoStreamResponse) || Unfit(err) {
		t.Errorf("a subject of no stream: %v, want an error that passes", err)
	}
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	passes(t, "a broker that is away", publish(p.name, 10))
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p.works()
}

// A position in the stream has to outlive its reader. A consumer that was made beforehand does; one that Subscribe
// makes for a durable name is deleted when the subscription ends, and the next reader begins again.
func natsForgetsOwnConsumer(t *testing.T, c *cluster.Cluster) {
	p := newStream(t, c)
	p.mustPublish("first", "second")
	read := func(name string) string {
		subscriber, err := NewJetStreamSubscriber(c.URL(),
			ConsumerOf{Stream: p.name, Name: name, AckWait: 2 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := receive(t, subscribe(t, subscriber, p.name))
		m.Ack()
		text := string(m.Payload)
		if err := subscriber.Close(); err != nil {
			t.Fatal(err)
		}
		return text
	}
	if first, second := read("shop"), read("shop"); first != "first" || second != "second" {
		t.Errorf("a consumer made beforehand gave %s, then %s", first, second)
	}
	if first, second := read("own"), read("own"); first != "first" || second != "first" {
		t.Errorf("watermill-nats' own consumer gave %s, then %s: it used to forget its place", first, second)
	}
}

// Producers that know nothing of Watermill give no UUID header.
func natsNamesForeign(t *testing.T, c *cluster.Cluster) {
	p, js := newJetStream(t, c), connect(t, c)
	two := nats.Header{"Twice": {"a", "b"}} // the unmarshaler of watermill-nats refuses it, and it comes again for ever
	for _, msg := range []*nats.Msg{{Subject: p.name, Header: two},
		{Subject: p.name, Header: nats.Header{nats.MsgIdHdr: {"theirs"}}}} {
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{p.name + ":1", "theirs"} {
		if m := p.next(); m.UUID != want {
			t.Errorf("the id is %q, want %q", m.UUID, want)
		}
	}
}

// nats.go acknowledges for the handler unless it is told not to, and watermill-nats does not tell it.
func natsGivesAgain(t *testing.T, c *cluster.Cluster) {
	p := newStream(t, c)
	p.mustPublish("a")
	// shorter than the consumer's
	patience := ConsumerOf{Stream: p.name, Name: "shop", AckWait: 200 * time.Millisecond}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, err := jetStreamSubscriber(t, c, patience).Subscribe(ctx, p.name)
	if err != nil {
		t.Fatal(err)
	}
	m := receive(t, first) // its time passes
	if again := receive(t, first); again.UUID != m.UUID {
		t.Errorf("message %s came, want %s again", again.UUID, m.UUID)
	}
	leave()           // with the message in hand
	for range first { // until it is closed
	}
	p.in = subscribe(t, ofShop(t, c, p.name), p.name)
	if last := p.next(); last.UUID != m.UUID {
		t.Errorf("message %s came to the next subscriber, want %s", last.UUID, m.UUID)
	}
}

// A second process of an application takes over, and does not take everything a second time. What the first had in hand
// when it left may come again: its acknowledgement may not have got out.
func natsShares(t *testing.T, c *cluster.Cluster) {
	p := newStream(t, c)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, err := ofShop(t, c, p.name).Subscribe(ctx, p.name)
	if err != nil {
		t.Fatal(err)
	}
	second := subscribe(t, ofShop(t, c, p.name), p.name)
	times, inHand := map[string]int{}, ""
	for i := range 20 {
		m := message.NewMessage(watermill.NewUUID(), nil)
		if err := p.out.Publish(p.name, m); err != nil {
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
