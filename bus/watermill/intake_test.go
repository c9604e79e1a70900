package watermill_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus/watermill"
)

// broker is one in memory, which keeps what nobody has subscribed to yet.
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
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx) }()
	stopped := false
	stop = func() {
		w.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("intake: %v", err)
		}
	}
	w.Cleanup(stop)
	return stop
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
	w.intake(b, watermill.IntakeOptions{Endpoint: "others"}) // it gets all of them again, for itself
	w.until("all have come", func() bool { return w.left("others") >= 100 })
	if n := w.left("orders"); n != 100 {
		t.Errorf("%d messages", n)
	}
}

func TestIntakeOptionsOutOfRange(t *testing.T) {
	w := newWorld(t)
	for want, o := range map[string]watermill.IntakeOptions{
		"Source: a source of 300 bytes, want 1 to 255":     {Source: strings.Repeat("x", 300)},
		`Endpoint "Orders"`:                                {Endpoint: "Orders"},
		"Subscriptions is -1, want at most 1000 (0 is 1)":  {Subscriptions: -1},
		"BatchMax is 20000, want at most 10000 (0 is 500)": {BatchMax: 20_000},
		"BatchBytes is -1, want at most 67108864":          {BatchBytes: -1},
		"Drain is -1ns, want a positive time (0 is 10s)":   {Drain: -1},
	} {
		if _, err := watermill.NewIntake(w.bus, "paid", broker(t), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := watermill.NewIntake(nil, "", nil, watermill.IntakeOptions{}); err == nil ||
		!strings.Contains(err.Error(), "bus is nil") || !strings.Contains(err.Error(), "topic is empty") || !strings.Contains(err.Error(), "subscriber is nil") {
		t.Error(err)
	}
}
