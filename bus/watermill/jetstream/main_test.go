package jetstream_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// soon is far longer than any of these waits takes.
const soon = 30 * time.Second

// world is a server of JetStream in this process, with a connection to it.
type world struct {
	*testing.T
	dir    string
	server *server.Server
	conn   *nats.Conn
	js     natsjs.JetStream
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, dir: t.TempDir()}
	w.serve(server.RANDOM_PORT)
	w.conn = w.connect()
	var err error
	if w.js, err = natsjs.New(w.conn); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) serve(port int) {
	w.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: w.dir, MaxPayload: 8192, NoSigs: true, NoLog: true,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.server = s
	s.Start()
	if !s.ReadyForConnections(soon) {
		w.Fatal("the server does not come up")
	}
	w.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
}

// restart ends the server and starts it again on its port, with its stored messages.
func (w *world) restart(while func()) {
	w.Helper()
	w.server.Shutdown()
	w.server.WaitForShutdown()
	for w.conn.IsConnected() {
		runtime.Gosched()
	}
	while()
	port := 0
	if _, err := fmt.Sscanf(w.server.ClientURL(), "nats://127.0.0.1:%d", &port); err != nil {
		w.Fatal(err)
	}
	w.serve(port)
}

func (w *world) connect() *nats.Conn {
	w.Helper()
	conn, err := jetstream.Connect(w.server.ClientURL())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(conn.Close)
	return conn
}

// stream makes a stream that allows batches, with a consumer of the same name for all of it.
func (w *world) stream(name string, change ...func(*natsjs.StreamConfig)) {
	w.Helper()
	config := natsjs.StreamConfig{Name: name, Subjects: []string{name, name + ".*"}, AllowAtomicPublish: true}
	for _, f := range change {
		f(&config)
	}
	_, err := w.js.CreateStream(w.Context(), config)
	if err == nil {
		_, err = w.js.CreateConsumer(w.Context(), name, jetstream.ConsumerConfig(name))
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) publisher(o jetstream.PublisherOptions) *jetstream.Publisher {
	w.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	p, err := jetstream.NewPublisher(w.conn, o)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) publish(topic string, texts ...string) {
	w.Helper()
	if err := w.publisher(jetstream.PublisherOptions{}).Publish(topic, named(texts...)...); err != nil {
		w.Fatal(err)
	}
}

// named returns messages whose UUIDs are their payloads.
func named(texts ...string) []*message.Message {
	all := make([]*message.Message, len(texts))
	for n, text := range texts {
		all[n] = message.NewMessage(text, []byte(text))
	}
	return all
}

// held returns the payloads in a stream, in their order.
func (w *world) held(stream string) (texts []string) {
	w.Helper()
	s, err := w.js.Stream(w.Context(), stream)
	if err != nil {
		w.Fatal(err)
	}
	info, err := s.Info(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for n := uint64(1); n <= info.State.LastSeq; n++ {
		m, err := s.GetMsg(w.Context(), n)
		if err != nil {
			w.Fatal(err)
		}
		texts = append(texts, string(m.Data))
	}
	return texts
}

// subscribe subscribes until the test ends or leave is called.
func (w *world) subscribe(topic string, o jetstream.SubscriberOptions) (messages <-chan *message.Message,
	leave func()) {
	w.Helper()
	if o.Stream == "" {
		o.Stream = topic
	}
	o.Logger = slog.New(slog.NewTextHandler(w.Output(), nil))
	s, err := jetstream.NewSubscriber(w.connect(), o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	messages, err = s.Subscribe(ctx, topic)
	if err != nil {
		cancel()
		w.Fatal(err)
	}
	leave = func() {
		cancel()
		if err := s.Close(); err != nil {
			w.Error(err)
		}
	}
	w.Cleanup(leave)
	return messages, leave
}

func (w *world) receive(messages <-chan *message.Message) *message.Message {
	w.Helper()
	select {
	case m, open := <-messages:
		if !open {
			w.Fatal("the channel is closed, want a message")
		}
		return m
	case <-time.After(soon):
		w.Fatalf("no message in %v", soon)
	}
	return nil
}
