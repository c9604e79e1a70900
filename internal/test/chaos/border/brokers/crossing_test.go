package brokers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// said is a message that crosses; its key is in a header too.
type said struct {
	Key string
	N   int
}

func (said) Kind() string { return "border.said" }

const (
	keys      = 8
	each      = 40
	total     = keys * each
	parts     = 4
	relayName = "other.side"
	heard     = "heard"
)

func TestCrossingJetStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		over    string
		nodes   int
		noMsgID bool // each repeat is one more message of the stream, and the inbox alone drops it
		middle  func(x *crossing)
	}{
		"one node is killed":                         {WatermillNATS, 1, false, restarts},
		"the inbox drops what is repeated":           {WatermillNATS, 1, true, func(*crossing) {}},
		"the leader of three is killed":              {WatermillNATS, 3, false, losesLeader},
		"another of three is killed, and comes back": {WatermillNATS, 3, true, restartsFollower},
		"batches: one node is killed":                {Batches, 1, false, restarts},
		"batches: the inbox drops what is repeated":  {Batches, 1, true, (*crossing).reconnects},
		"batches: the leader of three is killed": {Batches, 3, false, func(x *crossing) {
			losesLeader(x)
			x.reconnects()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := cluster.New(t, cluster.Options{Nodes: c.nodes})
			r := Route{Over: c.over, URL: nodes.URL(), Topic: "said", Parts: parts, NoMsgID: c.noMsgID}
			newCrossing(t, r, nodes).cross(c.middle)
			if c.nodes > 1 {
				return // a leader that was killed may have taken a message without an answer
			}
			_, taken, err := nodes.Messages(t.Context(), "said")
			if err != nil || (taken > total) != c.noMsgID || taken < total {
				t.Errorf("the stream has taken %d messages of %d that were told: with ids it is to drop repeats: %v",
					taken, total, err)
			}
		})
	}
}

func restarts(x *crossing) {
	x.must(x.nodes.Kill(0))
	x.must(x.nodes.Restart(x.Context(), 0))
}

// losesLeader kills the leader, which comes back after the judgement: two nodes are enough.
func losesLeader(x *crossing) {
	leader, err := x.nodes.Leader(x.Context(), x.route.Topic)
	x.must(err)
	x.must(x.nodes.Kill(leader))
	x.after = func() { x.must(x.nodes.Restart(x.Context(), leader)) }
}

func restartsFollower(x *crossing) {
	leader, err := x.nodes.Leader(x.Context(), x.route.Topic)
	x.must(err)
	follower := (leader + 1) % x.nodes.Nodes()
	x.must(x.nodes.Kill(follower))
	x.must(x.nodes.Restart(x.Context(), follower))
}

func TestCrossingKafkaOrKfake(t *testing.T) {
	t.Parallel()
	for name, middle := range map[string]func(*crossing, *kafkas){
		// Partitions move from one member to the other while messages are in hand.
		"members come and go": func(x *crossing, k *kafkas) {
			guest := k.subscriber(x.T, x.route.Topic)
			_, err := guest.Subscribe(x.Context(), x.route.Topic) // it takes partitions and answers nothing
			x.must(err)
			x.must(guest.Close())
			x.take() // and another that stays
		},
		// Leaders and the coordinator of the group move, and answers to what was written are errors.
		"connections break": func(x *crossing, k *kafkas) {
			if k.fake == nil { // nothing of somebody else's broker is broken
				return
			}
			k.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: x.route.Topic,
				Err: kerr.NotEnoughReplicasAfterAppend, Count: 5})
			k.cut()
			k.fake.ShufflePartitionLeaders()
			k.fake.RehashCoordinators()
			k.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKafkas(t)
			x := newCrossing(t, Route{Over: Kafka, URL: k.url(), Topic: k.topic(t)}, nil)
			x.cross(func(x *crossing) { middle(x, k) })
		})
	}
}

// crossing is the way of messages from a database over a broker into a queue of another, where they stay and are
// counted.
type crossing struct {
	*testing.T
	route             Route
	nodes             nodes.Nodes
	pool              *pgxpool.Pool
	here, there       *bus.Bus
	operator          *operate.Operator // of here
	schema            string            // there
	endRelay, endTake func()            // of the first ones
	reads             *nats.Conn        // of the first reader of batches
	after             func()            // the judgement
	repeats, refusals atomic.Int64
}

// newCrossing lays the route, and runs a relay and an intake over it.
func newCrossing(t *testing.T, r Route, n nodes.Nodes) *crossing {
	t.Helper()
	x := &crossing{T: t, route: r, nodes: n, pool: pgdev.Pool(t), schema: pgdev.Schema(t), after: func() {}}
	side := func(schema string) *bus.Bus {
		x.must(migrations.Up(t.Context(), x.pool, migrations.Options{Schema: schema}))
		b, err := bus.New(x.pool, bus.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
		x.must(err)
		return b
	}
	here := pgdev.Schema(t)
	x.here, x.there = side(here), side(x.schema)
	var err error
	x.operator, err = operate.New(x.pool, operate.Options{Schema: here})
	x.must(err)
	x.must(r.Way().Lay(t.Context(), n))
	x.endTake = x.take()
	if x.refuses() {
		x.take() // it stands by
	}
	x.endRelay = x.relay()
	return x
}

func (x *crossing) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// relay retries so often that an election of some seconds is ten failures, the default of Stuck. From then on messages
// behind the one that fails are tried, and one that goes through at the moment the broker comes back has overtaken it:
// docs/guide/outbox.md. Order is judged here.
func (x *crossing) relay() (stop func()) {
	x.Helper()
	publisher, end, err := x.route.Way().Publisher(x.Context())
	x.must(err)
	x.Cleanup(end)
	o := x.route.Relay(8)
	o.Lease, o.MaxRetryDelay, o.Stuck, o.BatchMax = 2*time.Second, 200*time.Millisecond, math.MaxInt32, 50
	relay, err := watermill.NewRelay(x.here, relayName, &forgetful{Publisher: publisher, x: x}, o, said{}.Kind())
	x.must(err)
	x.must(relay.Install(x.Context()))
	return x.run("relay", relay.Run)
}

func (x *crossing) take() (stop func()) {
	x.Helper()
	subscriber := x.subscriber()
	if x.refuses() {
		subscriber = &reluctant{Subscriber: subscriber, x: x}
	}
	intake, err := watermill.NewIntake(x.there, x.route.Topic, subscriber,
		watermill.IntakeOptions{Endpoint: heard, Logger: slog.New(slog.DiscardHandler)})
	x.must(err)
	x.must(intake.Install(x.Context()))
	return x.run("intake", intake.Run)
}

// subscriber keeps the connection of the first reader of batches, so that it can be broken.
func (x *crossing) subscriber() message.Subscriber {
	x.Helper()
	if x.route.Over != Batches || x.reads != nil {
		s, end, err := x.route.Way().Subscriber(x.Context())
		x.must(err)
		x.Cleanup(end)
		return s
	}
	var err error
	x.reads, err = jetstream.Connect(x.route.URL)
	x.must(err)
	x.Cleanup(x.reads.Close)
	s, err := jetstream.NewSubscriber(x.reads,
		jetstream.SubscriberOptions{Stream: x.route.Topic, Logger: slog.New(slog.DiscardHandler)})
	x.must(err)
	return s
}

func (x *crossing) reconnects() { x.must(x.reads.ForceReconnect()) }

// run calls f until the test ends, or stop is called, which returns when f has.
func (x *crossing) run(what string, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			x.Errorf("%s: %v", what, err)
		}
	})
	x.Cleanup(stop)
	return stop
}

// forgetful publishes, and forgets at every thirtieth message or batch that it did: the relay gives that one again.
type forgetful struct {
	message.Publisher
	x *crossing
	n atomic.Int64
}

func (f *forgetful) BatchMax() int {
	if b, ok := f.Publisher.(watermill.BatchPublisher); ok {
		return b.BatchMax()
	}
	return 1
}

var errForgotten = errors.New("it is published, and the answer is lost")

func (f *forgetful) Publish(topic string, m ...*message.Message) error {
	err := f.Publisher.Publish(topic, m...)
	if n := f.n.Add(1); err == nil && (n%30 == 0 || len(m) > 1 && n%3 == 0) {
		f.x.repeats.Add(1)
		return errForgotten
	}
	return err
}

// refuses reports whether the readers are reluctant. Readers of watermill-kafka get a message again under the same
// context.
func (x *crossing) refuses() bool { return x.route.Over == Batches || x.route.Over == RabbitMQ }

// reluctant nacks every fiftieth message, and then all that it still has in hand, as an intake does whose database is
// away.
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

// cross sends all messages, the keys in turn, calls middle at half of them, and judges.
func (x *crossing) cross(middle func(x *crossing)) {
	x.Helper()
	for n := range each {
		if n == each/2 {
			middle(x)
		}
		x.must(x.here.InTx(x.Context(), func(tx pgx.Tx) error {
			for key := range keys {
				m := said{Key: fmt.Sprint("k", key), N: n}
				if _, err := x.here.SendTx(x.Context(), tx, m, saga.To(relayName),
					saga.WithHeader(KeyHeader, m.Key)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	x.rest()
	x.judge()
	x.after()
}

// arrived are the messages in the queue there, in its order.
func (x *crossing) arrived() []said {
	x.Helper()
	table, schema := "", pgx.Identifier{x.schema}.Sanitize()
	x.must(x.pool.QueryRow(x.Context(), `SELECT 'queue_' || id FROM `+schema+`.queue WHERE endpoint = $1`,
		heard).Scan(&table))
	rows, err := x.pool.Query(x.Context(), `SELECT convert_from(body, 'UTF8')::json ->> 'Key', (convert_from(body,
		'UTF8')::json ->> 'N')::int
		FROM `+schema+`.`+table+` ORDER BY due, id`)
	x.must(err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[said])
	x.must(err)
	return all
}

// rest waits until all messages have arrived and no queue or broker has any.
func (x *crossing) rest() {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Context(), 40*time.Second)
	defer cancel()
	for looks := 0; looks < 5; looks++ { // in a row: a double would come a moment later
		left, err := x.route.Way().Unread(ctx, x.nodes)
		queues, queueErr := x.operator.Queues().List(ctx)
		if err != nil || queueErr != nil || left > 0 || queues[0].Ready+queues[0].Delayed > 0 ||
			len(x.arrived()) < total {
			looks = -1
		}
		if err := run.Sleep(ctx, 50*time.Millisecond); err != nil {
			x.Errorf("the way is not empty in time: %d in the broker (%v), here %+v (%v)", left, err, queues, queueErr)
			return
		}
	}
}

func (x *crossing) judge() {
	x.Helper()
	next, double, disorder, all := map[string]int{}, 0, 0, x.arrived()
	seen := map[said]bool{}
	for _, m := range all {
		switch {
		case seen[m]:
			double++
		case m.N < next[m.Key]:
			disorder++
		default:
			next[m.Key] = m.N + 1
		}
		seen[m] = true
	}
	x.Logf("%d told, %d arrived, %d repeated by the relay, %d offered to readers that nack", total, len(all),
		x.repeats.Load(), x.refusals.Load())
	if lost := total - len(seen); lost+double+disorder != 0 || x.repeats.Load() == 0 {
		x.Errorf("lost %d, double %d, behind a later one of its key %d, of %d messages, of which %d were repeated",
			lost, double, disorder, total, x.repeats.Load())
	}
	if x.refuses() && x.refusals.Load() < total*51/50 {
		x.Error("no message was nacked")
	}
}
