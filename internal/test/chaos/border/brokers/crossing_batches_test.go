package brokers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/nats-io/nats.go"
)

const inHand = 256

// batches is the way over JetStream with batches and several messages in hand: one stream, one consumer, strict order.
type batches struct {
	*crossing
	nodes *cluster.Cluster
	reads *nats.Conn // of the first reader
}

func crossInBatches(t *testing.T, nodes int, o jetstream.PublisherOptions) *batches {
	t.Helper()
	b := &batches{crossing: newCrossing(t), nodes: cluster.New(t, cluster.Options{Nodes: nodes})}
	create(t, b.nodes, "said", cluster.StreamOptions{Subjects: []string{"said.*"}, Replicas: nodes, Batches: true})
	if err := b.nodes.CreateOrderedConsumer(t.Context(), "said", "said"); err != nil {
		t.Fatal(err)
	}
	o.Parts, o.Key, o.AckWait = parts, jetstream.ByMetadata(keyHeader), time.Second
	publisher, err := jetstream.NewPublisher(b.connect(), o)
	if err != nil {
		t.Fatal(err)
	}
	b.relay(publisher, watermill.RelayOptions{Topic: "said"})
	b.reads = b.connect()
	b.take(b.reader(b.reads), "said")
	b.take(b.reader(b.connect()), "said") // it stands by
	return b
}

func (b *batches) connect() *nats.Conn {
	b.Helper()
	conn, err := jetstream.Connect(b.nodes.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	return conn
}

// reader is a subscriber that nacks every fiftieth message, and then all that it still has in hand, as an intake does
// whose database is away.
func (b *batches) reader(conn *nats.Conn) message.Subscriber {
	b.Helper()
	s, err := jetstream.NewSubscriber(conn, jetstream.SubscriberOptions{Stream: "said", InHand: inHand,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return &reluctant{Subscriber: s, x: b.crossing}
}

type reluctant struct {
	message.Subscriber
	x *crossing
}

func (r *reluctant) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := r.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for m := range in {
			if r.x.refusals.Add(1)%50 == 0 {
				m.Nack()
				<-m.Context().Done() // what comes under another context begins with m again, or before it
				continue
			}
			if m.Context().Err() != nil {
				m.Nack()
				continue
			}
			out <- m
		}
	}()
	return out, nil
}

// quiet is what is not acked.
func (b *batches) quiet() (uint64, error) { return b.nodes.Unread(b.Context(), "said") }

func (b *batches) judgeBatches() {
	b.Helper()
	b.judge(b.quiet)
	b.Logf("%d messages were offered to the intakes", b.refusals.Load())
	if b.refusals.Load() < keys*each*51/50 {
		b.Error("no message was nacked")
	}
}

func TestInBatchesOverOneNodeThatIsKilled(t *testing.T) {
	t.Parallel()
	b := crossInBatches(t, 1, jetstream.PublisherOptions{})
	b.say(func() {
		if err := b.nodes.Kill(0); err != nil {
			t.Fatal(err)
		}
		if err := b.nodes.Restart(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	})
	b.judgeBatches()
	if _, taken, err := b.nodes.Messages(t.Context(), "said"); err != nil || taken != keys*each {
		t.Errorf("the stream has taken %d messages, and %d was all that were told: it is to drop repeats: %v", taken,
			keys*each, err)
	}
}

// JetStream is told no ids, so that each repeat is one more message of the stream, and the inbox alone drops it.
func TestInBatchesWhoseRepeatsTheInboxDrops(t *testing.T) {
	t.Parallel()
	b := crossInBatches(t, 1, jetstream.PublisherOptions{NoMsgID: true})
	b.say(func() {
		if err := b.reads.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
	})
	b.judgeBatches()
	if _, taken, err := b.nodes.Messages(t.Context(), "said"); err != nil || taken <= keys*each {
		t.Errorf("the stream has taken %d messages, and %d were told: no repeat has come to the inbox: %v", taken,
			keys*each, err)
	}
}

func TestInBatchesOverThreeNodesWhoseLeaderIsKilled(t *testing.T) {
	t.Parallel()
	b := crossInBatches(t, 3, jetstream.PublisherOptions{})
	dead := 0
	b.say(func() {
		var err error
		if dead, err = b.nodes.Leader(t.Context(), "said"); err != nil {
			t.Fatal(err)
		}
		if err := b.nodes.Kill(dead); err != nil {
			t.Fatal(err)
		}
		if err := b.reads.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
	})
	b.judgeBatches() // two nodes are enough
	if err := b.nodes.Restart(t.Context(), dead); err != nil {
		t.Error(err)
	}
}
