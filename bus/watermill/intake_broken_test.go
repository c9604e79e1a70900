package watermill_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// If a function of the user's panics, ends its goroutine or does not return for a message, the intake continues: the
// message becomes a dead letter, with its bytes and a kind under which it can be retried.
func TestIntakeSurvivesPanicsOfItsOptions(t *testing.T) {
	if pgdev.Apart(t) {
		return
	}
	w := newWorld(t)
	b := broker(t)
	w.intake(b, watermill.IntakeOptions{
		Endpoint: "orders",
		ID: func(m *message.Message) string {
			if m.UUID == "payment 3" {
				panic("no such coordinate")
			}
			if m.UUID == "payment 7" {
				runtime.Goexit()
			}
			return m.UUID
		},
		Kind: func(topic string, m *message.Message) string {
			if m.UUID == "payment 5" {
				panic("no such type")
			}
			if m.UUID == "payment 8" {
				runtime.Goexit()
			}
			if m.UUID == "payment 9" {
				<-t.Context().Done()
			}
			return watermill.KindOf(topic, m)
		},
	})
	for n := range 10 {
		if err := b.Publish("paid", paid(n)); err != nil {
			t.Fatal(err)
		}
	}
	name := pgx.Identifier{w.schema}.Sanitize()
	letters := func() (found string) {
		if err := w.pool.QueryRow(t.Context(),
			`SELECT coalesce(string_agg(concat_ws(' ', endpoint, kind, convert_from(body, 'UTF8'), error), '; '
				ORDER BY body), '')
			FROM `+name+`.dead_letter`).Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	w.until("all have come", func() bool { return w.left("orders") == 5 && strings.Count(letters(), ";") == 4 })
	const want = `orders order.paid {"N":3} ingested from paid: IntakeOptions.ID: panic: no such coordinate; ` +
		`orders order.paid {"N":5} ingested from paid: IntakeOptions.Kind: panic: no such type; ` +
		`orders order.paid {"N":7} ingested from paid: IntakeOptions.ID: it ended its goroutine (runtime.Goexit, or ` +
		`FailNow of package testing); ` +
		`orders order.paid {"N":8} ingested from paid: IntakeOptions.Kind: it ended its goroutine (runtime.Goexit, ` +
		`or FailNow of package testing); ` +
		`orders order.paid {"N":9} ingested from paid: IntakeOptions.Kind: a function of the program has not ` +
		`returned in time, and a new worker replaces the one that called it`
	if got := letters(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A message that is too large for this database stays with the broker, and does not delay its neighbours.
func TestIntakeRefusesATooLargeMessageAlone(t *testing.T) {
	w := newWorld(t)
	large := message.NewMessage("large", make([]byte, 16<<20+1))
	large.Metadata.Set(watermill.KindKey, "order.paid")
	all := []*message.Message{paid(1), large, paid(2)}
	w.intake(&handful{all: all}, watermill.IntakeOptions{Endpoint: "orders"})
	w.until("the neighbours have come, and it is back", func() bool {
		select {
		case <-large.Nacked():
			return w.left("orders") == 2
		default:
			return false
		}
	})
	for _, m := range []*message.Message{all[0], all[2]} {
		<-m.Acked()
	}
}

// handful is a subscriber that delivers some messages once.
type handful struct{ all []*message.Message }

func (s *handful) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	channel := make(chan *message.Message, len(s.all))
	for _, m := range s.all {
		channel <- m
	}
	s.all = nil
	context.AfterFunc(ctx, func() { close(channel) })
	return channel, nil
}

func (*handful) Close() error { return nil }

// fragile is a subscriber whose first subscriptions panic, or end their goroutine.
type fragile struct {
	message.Subscriber
	left atomic.Int64
}

func (s *fragile) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	switch left := s.left.Add(-1); {
	case left > 0:
		panic("no such partition")
	case left == 0:
		runtime.Goexit()
	}
	return s.Subscriber.Subscribe(ctx, topic)
}

// A subscription that panics, or ends its goroutine, has failed, and is made again.
func TestIntakeSurvivesPanicsOfItsSubscriber(t *testing.T) {
	if pgdev.Apart(t) {
		return
	}
	w := newWorld(t)
	inner := broker(t)
	b := &fragile{Subscriber: inner}
	b.left.Store(2)
	if err := inner.Publish("paid", paid(1)); err != nil {
		t.Fatal(err)
	}
	w.intake(b, watermill.IntakeOptions{Endpoint: "orders"})
	w.until("it has come", func() bool { return w.left("orders") == 1 })
}

// However a connection breaks, acked messages are in the queue, and every message arrives once.
func TestIntakeWhileConnectionsBreak(t *testing.T) {
	const n = 7
	w := newWorld(t)
	broken, proxy := w.breakable()
	if err := w.bus.InstallQueue(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	inner, sent := broker(t), 0
	send := func() {
		for range n {
			sent++
			if err := inner.Publish("paid", paid(sent)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := &watched{Subscriber: inner}
	broken.intake(b, watermill.IntakeOptions{Endpoint: "orders"})
	for _, f := range []faultproxy.Fault{
		{Statement: "lock_ring"}, {Statement: "claim_received"}, {Statement: "claim_received", When: faultproxy.After},
		{Statement: "insert_in_order", When: faultproxy.After}, {Statement: "commit"},
		{Statement: "commit", Do: faultproxy.Swallow},
	} {
		t.Logf("%v", f)
		acked, nacked, left := b.different(), b.nacked.Load(), w.left("orders")
		proxy.Set(f)
		send()
		w.until("some are nacked", func() bool { return b.nacked.Load() >= nacked+2 })
		if got := b.different(); got != acked || w.left("orders") != left {
			t.Errorf("%v: %d are acked and %d are there, while nothing could be written", f, got-acked,
				w.left("orders")-left)
		}
		proxy.Set()
		w.until("all are acked", func() bool { return b.different() == acked+n })
		if got := w.left("orders"); got != left+n {
			t.Errorf("%v: %d messages are there, want %d", f, got-left, n)
		}
	}

	// The commit takes effect and its reply is lost: the messages are delivered again, and recognized by their ids.
	acked, nacked, left := b.different(), b.nacked.Load(), w.left("orders")
	proxy.Set(faultproxy.Fault{Statement: "commit", Do: faultproxy.DropReply})
	send()
	w.until("one is nacked that is there", func() bool { return b.nacked.Load() > nacked && w.left("orders") > left })
	proxy.Set()
	w.until("all are acked", func() bool { return b.different() == acked+n })
	if got := w.left("orders"); got != left+n {
		t.Errorf("after lost replies %d messages are there, want %d", got-left, n)
	}
}

// breakable is the same world with a bus whose connections go through a proxy.
func (w *world) breakable() (*world, *faultproxy.Proxy) {
	w.Helper()
	proxy, dsn := pgtest.Proxy(w)
	return &world{T: w.T, pool: w.pool, schema: w.schema, bus: w.busOn(dsn)}, proxy
}

// busOn returns a bus of a second program, with its own connections.
func (w *world) busOn(dsn string) *bus.Bus {
	w.Helper()
	pool, err := pgxpool.New(w.Context(), dsn)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(pool.Close)
	b, err := bus.New(pool, bus.Options{Schema: w.schema, Wakeup: bus.PollOnly, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// forgetful is a subscriber whose broker loses the first ack of each message, and delivers the message again.
type forgetful struct {
	message.Subscriber
	deliveries atomic.Int64
}

func (s *forgetful) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out, lost := make(chan *message.Message), map[string]bool{}
	go func() {
		defer close(out)
		for m := range in {
			copied := m.Copy()
			select {
			case out <- copied:
			case <-ctx.Done():
				m.Nack()
				continue
			}
			s.deliveries.Add(1)
			select {
			case <-copied.Acked():
				if lost[m.UUID] {
					m.Ack()
					continue
				}
				lost[m.UUID] = true
			case <-copied.Nacked():
			case <-ctx.Done():
			}
			m.Nack()
		}
	}()
	return out, nil
}

type shipped struct{ N int }

func (shipped) Kind() string { return "order.shipped" }

// Every ack is lost once, so each message is delivered again after its commit. Its handler's messages are sent once.
func TestIntakeWhoseAcksAreLostHandlesOnce(t *testing.T) {
	w := newWorld(t)
	const n = 50
	if err := w.bus.InstallQueue(t.Context(), "shipping", shipped{}.Kind()); err != nil {
		t.Fatal(err)
	}
	w.run("orders", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m orderPaid) error {
		ctx.Send(shipped(m))
		return nil
	}))
	inner := broker(t)
	b := &forgetful{Subscriber: inner}
	w.intake(b, watermill.IntakeOptions{Endpoint: "orders"})
	for i := range n {
		if err := inner.Publish("paid", paid(i)); err != nil {
			t.Fatal(err)
		}
	}
	w.until("all have come twice, and are handled", func() bool {
		return b.deliveries.Load() >= 2*n &&
			w.left("orders") == 0 && w.left("shipping") >= n
	})
	if got := w.left("shipping"); got != n {
		t.Errorf("%d messages were sent, want %d", got, n)
	}
}

type orderPaid struct{ N int }

func (orderPaid) Kind() string { return "order.paid" }

// silent is a subscriber whose Subscribe never returns.
type silent struct {
	message.Subscriber
	came, back chan struct{}
}

func (s silent) Subscribe(context.Context, string) (<-chan *message.Message, error) {
	close(s.came)
	<-s.back
	return nil, errors.New("it is over")
}

// A stop does not wait for a subscriber that never returns, and the error names the call.
func TestIntakeEndsWithoutASubscriberThatNeverReturns(t *testing.T) {
	w := newWorld(t)
	s := silent{came: make(chan struct{}), back: make(chan struct{})}
	in, err := watermill.NewIntake(w.bus, "paid", s, watermill.IntakeOptions{Drain: 20 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = in.Install(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.came; cancel() }()
	err = in.Run(ctx)
	if !errors.Is(err, bus.ErrDrain) || !strings.Contains(err.Error(), "not waited for: Subscribe") {
		t.Errorf("Run returned %v", err)
	}
	close(s.back)
}
