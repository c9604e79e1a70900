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
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
	keyHeader = "key"
	relayName = "other.side"
	heard     = "heard"
)

// crossing is the way of messages from a database over a broker into a queue of another, where they stay and are
// counted.
type crossing struct {
	*testing.T
	pool        *pgxpool.Pool
	here, there *bus.Bus
	operator    *operate.Operator // of here
	schema      string            // there
	repeats     atomic.Int64
	refusals    atomic.Int64
}

func newCrossing(t *testing.T) *crossing {
	t.Helper()
	x := &crossing{T: t, pool: pgdev.Pool(t)}
	side := func(schema string) *bus.Bus {
		if err := migrate.Up(t.Context(), x.pool, migrate.Options{Schema: schema}); err != nil {
			t.Fatal(err)
		}
		b, err := bus.New(x.pool, bus.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	x.schema = pgdev.Schema(t)
	here := pgdev.Schema(t)
	x.here, x.there = side(here), side(x.schema)
	operator, err := operate.New(x.pool, operate.Options{Schema: here})
	if err != nil {
		t.Fatal(err)
	}
	x.operator = operator
	return x
}

// start runs a relay to the publisher and an intake from the subscriber until the test ends.
func (x *crossing) start(publisher message.Publisher, subscriber message.Subscriber, topic string) {
	x.Helper()
	x.byKey(publisher, topic)
	x.take(subscriber, topic)
}

// byKey runs a relay that publishes eight keys at a time.
func (x *crossing) byKey(publisher message.Publisher, topic string) (stop func()) {
	x.Helper()
	return x.relay(publisher, watermill.RelayOptions{Topic: topic, Parallel: 8,
		Key: func(d *saga.Delivery) string { return d.Info.Header(keyHeader) }})
}

// relay retries so often that an election of some seconds is ten failures, the default of Stuck. From then on messages
// behind the one that fails are tried, and one that goes through at the moment the broker comes back has overtaken it:
// docs/guide/outbox.md. Order is judged here.
func (x *crossing) relay(publisher message.Publisher, o watermill.RelayOptions) (stop func()) {
	x.Helper()
	o.RelayOptions = bus.RelayOptions{
		Lease: 2 * time.Second, Permanent: Unfit, RetryMost: 200 * time.Millisecond, Stuck: math.MaxInt32, BatchMax: 50,
	}
	relay, err := watermill.NewRelay(x.here, relayName, &forgetful{Publisher: publisher, x: x}, o, said{}.Kind())
	if err != nil {
		x.Fatal(err)
	}
	if err := relay.Install(x.Context()); err != nil {
		x.Fatal(err)
	}
	return x.run("relay", relay.Run)
}

func (x *crossing) take(subscriber message.Subscriber, topic string) (stop func()) {
	x.Helper()
	intake, err := watermill.NewIntake(x.there, topic, subscriber,
		watermill.IntakeOptions{Endpoint: heard, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		x.Fatal(err)
	}
	if err := intake.Install(x.Context()); err != nil {
		x.Fatal(err)
	}
	return x.run("intake", intake.Run)
}

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

// say sends all messages, each in a transaction of its own, the keys in turn, and calls middle at half of them.
func (x *crossing) say(middle func()) {
	x.Helper()
	for n := range each {
		if n == each/2 {
			middle()
		}
		err := x.here.InTx(x.Context(), func(tx pgx.Tx) error {
			for key := range keys {
				m := said{Key: fmt.Sprint("k", key), N: n}
				if _, err := x.here.SendTx(x.Context(), tx, m, saga.To(relayName),
					saga.WithHeader(keyHeader, m.Key)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			x.Fatal(err)
		}
	}
}

// arrived are the messages in the queue there, in its order.
func (x *crossing) arrived() []said {
	x.Helper()
	table, schema := "", pgx.Identifier{x.schema}.Sanitize()
	err := x.pool.QueryRow(x.Context(), `SELECT 'queue_' || id FROM `+schema+`.queue WHERE endpoint = $1`,
		heard).Scan(&table)
	if err != nil {
		x.Fatal(err)
	}
	rows, err := x.pool.Query(x.Context(), `SELECT convert_from(body, 'UTF8')::json ->> 'Key', (convert_from(body,
		'UTF8')::json ->> 'N')::int
		FROM `+schema+`.`+table+` ORDER BY due, id`)
	if err != nil {
		x.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[said])
	if err != nil {
		x.Fatal(err)
	}
	return all
}

// judge waits until all is there and nothing is under way, and then counts. quiet tells how much the broker still has
// to give.
func (x *crossing) judge(quiet func() (uint64, error)) {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Context(), 40*time.Second)
	defer cancel()
	for looks := 0; looks < 5; looks++ { // in a row: a double would come a moment later
		left, err := quiet()
		if queues, queueErr := x.operator.Queues().List(ctx); err != nil || queueErr != nil ||
			queues[0].Ready+queues[0].Delayed > 0 || left > 0 {
			looks = -1
		}
		if err := run.Sleep(ctx, 50*time.Millisecond); err != nil {
			x.Errorf("the way is not empty in time: %d in the broker (%v), here %+v", left, err, x.queuesHere())
			break
		}
	}
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
	x.Logf("%d told, %d arrived, %d repeated by the relay", keys*each, len(all), x.repeats.Load())
	if lost := keys*each - len(seen); lost+double+disorder != 0 || x.repeats.Load() == 0 {
		x.Errorf("lost %d, double %d, behind a later one of its key %d, of %d messages, of which %d were repeated",
			lost, double, disorder, keys*each, x.repeats.Load())
	}
}

func (x *crossing) queuesHere() []operate.QueueInfo {
	queues, err := x.operator.Queues().List(x.Context())
	if err != nil {
		x.Error(err)
	}
	return queues
}
