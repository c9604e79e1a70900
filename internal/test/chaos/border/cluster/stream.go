package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	ordered "github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/nats-io/nats.go/jetstream"
)

// StreamOptions of a stream. The zero value is a stream of one replica in files, with the subject of its name, that
// forgets nothing.
type StreamOptions struct {
	Subjects []string // nil is the name
	Replicas int      // 0 is 1
	Queue    bool     // a message goes when its consumer acked it, instead of never
	Batches  bool     // it takes atomic batches
}

// CreateStream makes the stream, and waits for it to have a leader: peers that have just come up are not offered to
// streams at once.
func (c *Cluster) CreateStream(ctx context.Context, name string, o StreamOptions) error {
	config := jetstream.StreamConfig{Name: name, Subjects: o.Subjects, Replicas: max(o.Replicas, 1),
		AllowAtomicPublish: o.Batches}
	if o.Subjects == nil {
		config.Subjects = []string{name}
	}
	if o.Queue {
		config.Retention = jetstream.WorkQueuePolicy
	}
	err := c.ask(ctx, "create stream "+name, func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.CreateOrUpdateStream(ctx, config)
		return err
	})
	if err == nil {
		_, err = c.Leader(ctx, name)
	}
	return err
}

// ConsumerOptions of a durable consumer.
type ConsumerOptions struct {
	Subject string        // of the stream's subjects, only this; "" is all
	AckWait time.Duration // after which a message that nobody answered is given again; 0 is 30 seconds
	// messages given and not yet answered; 1 keeps the order also when one is given again; 0 is 1000
	MaxPending int
	// pushes to the members of a queue group of its own name, which is what package nats of watermill-nats listens to
	Push bool
}

// CreateConsumer makes a durable consumer that outlives its subscribers. One that watermill-nats or nats.go makes for
// itself goes when its subscription is closed, and its position with it.
func (c *Cluster) CreateConsumer(ctx context.Context, stream, name string, o ConsumerOptions) error {
	config := jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.AckWait, MaxAckPending: o.MaxPending,
		FilterSubject: o.Subject,
	}
	return c.ask(ctx, "create a consumer of stream "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		if o.Push {
			config.DeliverSubject, config.DeliverGroup = "deliver."+stream+"."+name, name
			_, err := js.CreateOrUpdatePushConsumer(ctx, stream, config)
			return err
		}
		_, err := js.CreateOrUpdateConsumer(ctx, stream, config)
		return err
	})
}

// CreateOrderedConsumer makes the durable consumer of a jetstream.Subscriber, of the whole stream.
func (c *Cluster) CreateOrderedConsumer(ctx context.Context, stream, name string) error {
	return c.ask(ctx, "create a consumer of stream "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.CreateOrUpdateConsumer(ctx, stream, ordered.ConsumerConfig(name))
		return err
	})
}

// Leader is the node that leads the stream. It waits for an election that is under way.
func (c *Cluster) Leader(ctx context.Context, stream string) (leader int, err error) {
	err = c.ask(ctx, "find the leader of stream "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		info, err := js.Stream(ctx, stream)
		if err != nil || len(c.nodes) == 1 {
			return err
		}
		cluster := info.CachedInfo().Cluster
		if cluster == nil || cluster.Leader == "" {
			return errors.New("no leader is elected")
		}
		leader = slices.IndexFunc(c.nodes, func(n *node) bool { return n.spec.Name == cluster.Leader })
		return nil
	})
	return leader, err
}

// Messages is how many messages the stream holds, and how many it has ever taken.
func (c *Cluster) Messages(ctx context.Context, stream string) (held, taken uint64, err error) {
	err = c.ask(ctx, "count the messages of stream "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		info, err := js.Stream(ctx, stream)
		if err == nil {
			held, taken = info.CachedInfo().State.Msgs, info.CachedInfo().State.LastSeq
		}
		return err
	})
	return held, taken, err
}

// Unread is how many messages the consumers of the stream have not acknowledged, together: those not given yet, and
// those in hand.
func (c *Cluster) Unread(ctx context.Context, stream string) (n uint64, err error) {
	err = c.ask(ctx, "count the unread of stream "+stream, func(ctx context.Context, js jetstream.JetStream) error {
		n = 0
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		all := s.ListConsumers(ctx)
		for info := range all.Info() {
			n += info.NumPending + uint64(info.NumAckPending)
		}
		return all.Err()
	})
	return n, err
}

// ask puts a question to JetStream over a connection of its own, again and again while the answer is an error. Each try
// is short: a question to a node that dies is never answered.
func (c *Cluster) ask(ctx context.Context, what string,
	question func(context.Context, jetstream.JetStream) error) error {
	conn, err := c.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	err = nodes.Await(ctx, func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return question(short, js)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
