package watermill_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What a queue of Edda's promises to Watermill: everything but exactly-once outside the database.
var features = tests.Features{
	ConsumerGroups: true,
	Persistent:     true,

	GuaranteedOrder:                     true,
	GuaranteedOrderWithSingleSubscriber: true,
}

// suite is the server, which is restarted, and the constructors that Watermill's universal suite wants.
type suite struct {
	*world
	server *pgdev.Server
}

func newSuite(t *testing.T) (suite, tests.Features) {
	t.Helper()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true, Settings: map[string]string{"max_connections": "600"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f := features
	if suiteReconnects {
		f.RestartServiceCommand = []string{os.Args[0], restartWord, restarts(t, server)}
	}
	return suite{worldOn(t, pool, "edda"), server}, f
}

// restarts listens for askForRestart, and returns where.
func restarts(t *testing.T, server *pgdev.Server) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer := "ok"
			if err := server.Restart(context.Background(), pgdev.Immediate); err != nil {
				answer = err.Error()
			}
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

func (s suite) pubSub(t *testing.T) (message.Publisher, message.Subscriber) {
	return s.make(t, watermill.PublisherOptions{}, watermill.SubscriberOptions{})
}

func (s suite) group(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	return s.make(t, watermill.PublisherOptions{Events: true}, watermill.SubscriberOptions{ConsumerGroup: group})
}

func (s suite) make(t *testing.T, p watermill.PublisherOptions, o watermill.SubscriberOptions) (message.Publisher, message.Subscriber) {
	t.Helper()
	publisher, err := watermill.NewPublisher(s.bus, p)
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := watermill.NewSubscriber(s.bus, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the suite leaves some open
		if err := errors.Join(publisher.Close(), subscriber.Close()); err != nil {
			t.Error(err)
		}
	})
	return publisher, subscriber
}

// Watermill's universal suite, with Postgres crashing twice in the middle of its reconnect test; under the race
// detector that one is left to TestReconnects.
func TestPubSub(t *testing.T) {
	t.Parallel()
	s, f := newSuite(t)
	tests.TestPubSub(t, f, s.pubSub, s.group)
}

// The suite ten times at once, in its short form.
func TestPubSubStressTest(t *testing.T) {
	t.Parallel()
	s, f := newSuite(t)
	f.RestartServiceCommand = nil // it would restart the server under its neighbours
	f.ForceShort = true
	tests.TestPubSubStressTest(t, f, s.pubSub, s.group)
}
