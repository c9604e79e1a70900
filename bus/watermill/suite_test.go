package watermill_test

import (
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The features that Edda's queues promise to Watermill: all except exactly-once outside the database.
//
// There is no RestartServiceCommand: Watermill 1.5.1's TestReconnect reads its list of published messages while a
// goroutine of its own still appends to it (test_pubsub.go:1086 and 1120), and fails when a message is received before
// it is in that list. TestReconnects shows the same for Edda, with two crashes of the server.
var features = tests.Features{
	ConsumerGroups: true,
	Persistent:     true,

	GuaranteedOrder:                     true,
	GuaranteedOrderWithSingleSubscriber: true,
}

// suite is the server, which is restarted, and the constructors that Watermill's universal suite needs.
type suite struct {
	*world
	server *pgdev.Server
}

func newSuite(t *testing.T) suite {
	t.Helper()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true,
		Settings: map[string]string{"max_connections": "600"}})
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
	return suite{worldOn(t, pool, "edda"), server}
}

func (s suite) pubSub(t *testing.T) (message.Publisher, message.Subscriber) { return s.group(t, "") }

func (s suite) group(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	t.Helper()
	publisher, err := watermill.NewPublisher(s.bus, watermill.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := watermill.NewSubscriber(s.bus, watermill.SubscriberOptions{ConsumerGroup: group})
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

// Watermill's universal suite.
func TestPubSub(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	tests.TestPubSub(t, features, s.pubSub, s.group)
}

// The suite ten times at once, in its short form.
func TestPubSubStressTest(t *testing.T) {
	t.Parallel()
	s, f := newSuite(t), features
	f.ForceShort = true
	tests.TestPubSubStressTest(t, f, s.pubSub, s.group)
}
