package watermill_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// broker returns a broker in memory, which keeps messages that have no subscriber yet.
func broker(t *testing.T) *gochannel.GoChannel {
	t.Helper()
	b := gochannel.NewGoChannel(gochannel.Config{Persistent: true, OutputChannelBuffer: 100}, wm.NopLogger{})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// intake runs an Intake until the test ends or stop is called.
func (w *world) intake(subscriber message.Subscriber, o watermill.IntakeOptions) (stop func()) {
	w.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	in, err := watermill.NewIntake(w.bus, "paid", subscriber, o)
	if err == nil {
		err = in.Install(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	return pgtest.Run(w.T, "intake", in.Run)
}

func paid(n int) *message.Message {
	m := message.NewMessage(fmt.Sprintf("payment %d", n), message.Payload(fmt.Sprintf(`{"N":%d}`, n)))
	m.Metadata.Set(watermill.KindKey, "order.paid")
	m.Metadata.Set("color", "red")
	return m
}

func TestIntakeBringsEachMessageOnce(t *testing.T) {
	w := newWorld(t)
	b := broker(t)
	w.intake(b, watermill.IntakeOptions{Endpoint: "orders"})
	for n := range 100 {
		for range 2 {
			if err := b.Publish("paid", paid(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.until("all have come", func() bool { return w.left("orders") >= 100 })
	w.intake(b, watermill.IntakeOptions{Endpoint: "others"}) // it gets all of them again, for its own endpoint
	w.until("all have come", func() bool { return w.left("others") >= 100 })
	if n := w.left("orders"); n != 100 {
		t.Errorf("%d messages", n)
	}
}

func TestIntakeOptionsOutOfRange(t *testing.T) {
	w := newWorld(t)
	for want, o := range map[string]watermill.IntakeOptions{
		"Source: a source of 300 bytes, want 1 to 255":               {Source: strings.Repeat("x", 300)},
		`Endpoint "Orders"`:                                          {Endpoint: "Orders"},
		"Subscriptions is -1, want 0 to 1000 (0 is the default, 1)":  {Subscriptions: -1},
		"BatchMax is 20000, want 0 to 10000 (0 is the default, 500)": {BatchMax: 20_000},
		"BatchBytes is -1, want 0 to 67108864":                       {BatchBytes: -1},
		"Drain is -1ns, want 0s to 24h0m0s (0 is the default, 10s)":  {Drain: -1},
	} {
		if _, err := watermill.NewIntake(w.bus, "paid", broker(t), o); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := watermill.NewIntake(nil, "", nil, watermill.IntakeOptions{}); err == nil ||
		!strings.Contains(err.Error(), "bus is nil") || !strings.Contains(err.Error(), "topic is empty") ||
		!strings.Contains(err.Error(), "subscriber is nil") {
		t.Error(err)
	}
}

// watched counts the acks and nacks of the messages that a subscriber delivers.
type watched struct {
	message.Subscriber
	acked, nacked atomic.Int64
	done          sync.Map // the UUIDs that were acked
}

// different returns how many messages were acked, each counted once.
func (s *watched) different() (n int) {
	s.done.Range(func(any, any) bool { n++; return true })
	return n
}

func (s *watched) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for m := range in {
			select {
			case out <- m:
			case <-ctx.Done():
				m.Nack()
				continue
			}
			select {
			case <-m.Acked():
				s.acked.Add(1)
				s.done.Store(m.UUID, true)
			case <-m.Nacked():
				s.nacked.Add(1)
			case <-ctx.Done():
			}
		}
	}()
	return out, nil
}

// While the database refuses, messages are nacked, slowly, and no message is acked; then all of them come, each once.
func TestIntakeNacksWhileTheDatabaseRefuses(t *testing.T) {
	w := newWorld(t)
	b := &watched{Subscriber: broker(t)}
	stop := w.intake(b, watermill.IntakeOptions{Endpoint: "orders"})
	ring := pgx.Identifier{w.schema, "ring"}.Sanitize()
	if _, err := w.pool.Exec(t.Context(), `ALTER TABLE `+ring+` RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if err := b.Subscriber.(*gochannel.GoChannel).Publish("paid", paid(n)); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	w.until("some are nacked", func() bool { return b.nacked.Load() >= 3 })
	if b.acked.Load() != 0 || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("after %v %d are acked, %d nacked", time.Since(begun), b.acked.Load(), b.nacked.Load())
	}
	if _, err := w.pool.Exec(t.Context(), `ALTER TABLE `+pgx.Identifier{w.schema, "away"}.Sanitize()+
		` RENAME TO ring`); err != nil {
		t.Fatal(err)
	}
	w.until("all have come", func() bool { return w.left("orders") == 20 && b.acked.Load() == 20 })
	stop()
}

// An intake that is stopped in the middle has acked only committed messages; the next intake ingests the others.
func TestIntakeThatIsStoppedLosesNothing(t *testing.T) {
	w := newWorld(t)
	const n = 200
	inner := broker(t)
	for i := range n {
		if err := inner.Publish("paid", paid(i)); err != nil {
			t.Fatal(err)
		}
	}
	for round := 1; round <= 4; round++ {
		b := &watched{Subscriber: inner}
		before := w.mayLeft("orders")
		stop := w.intake(b, watermill.IntakeOptions{Endpoint: "orders"})
		w.until("it goes on", func() bool { return w.left("orders") >= min(n, before+30) })
		stop()
		if left := w.left("orders"); b.different() > left || left > n {
			t.Errorf("round %d: %d messages are acked, %d are there", round, b.different(), left)
		}
	}
	w.intake(inner, watermill.IntakeOptions{Endpoint: "orders"})
	w.until("all have come", func() bool { return w.left("orders") == n })
}

// mayLeft is left for a queue that may not exist yet.
func (w *world) mayLeft(endpoint string) int {
	w.Helper()
	if err := w.bus.InstallQueue(w.Context(), endpoint); err != nil {
		w.Fatal(err)
	}
	return w.left(endpoint)
}
