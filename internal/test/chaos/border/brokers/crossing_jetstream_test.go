package brokers

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
)

const parts = 4

// crossJetStream starts the way over a stream of this cluster, and returns how to ask what is still in it.
func crossJetStream(t *testing.T, x *crossing, c *cluster.Cluster, o JetStreamOptions) func() (uint64, error) {
	t.Helper()
	create(t, c, "said", cluster.StreamOptions{Subjects: []string{"said.*"}, Replicas: c.Nodes()})
	for _, subject := range Subjects("said", parts) {
		consumer(t, c, "said", "there", subject)
	}
	o.Parts, o.Key, o.AckWait = parts, ByMetadata(keyHeader), time.Second
	subscriber := jetStreamSubscriber(t, c, ConsumerOf{Stream: "said", Name: "there", AckWait: 2 * time.Second})
	x.start(jetStreamPublisher(t, c, o), AllOf(subscriber, Subjects("said", parts)...), "said")
	return func() (uint64, error) { return c.Unread(t.Context(), "said") }
}

func TestOverOneNodeThatIsKilled(t *testing.T) {
	t.Parallel()
	x, c := newCrossing(t), cluster.New(t, cluster.Options{})
	quiet := crossJetStream(t, x, c, JetStreamOptions{})
	x.say(func() {
		if err := c.Kill(0); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	})
	x.judge(quiet)
	if _, taken, err := c.Messages(t.Context(), "said"); err != nil || taken != keys*each {
		t.Errorf("the stream has taken %d messages, and %d was all that were told: it is to drop repeats: %v", taken,
			keys*each, err)
	}
}

// JetStream is told no ids, so that each repeat is one more message of the stream, and the inbox alone drops it.
func TestOverOneNodeWithRepeatsThatTheInboxDrops(t *testing.T) {
	t.Parallel()
	x, c := newCrossing(t), cluster.New(t, cluster.Options{})
	quiet := crossJetStream(t, x, c, JetStreamOptions{NoMsgID: true})
	x.say(func() {})
	x.judge(quiet)
	if _, taken, err := c.Messages(t.Context(), "said"); err != nil || taken <= keys*each {
		t.Errorf("the stream has taken %d messages, and %d were told: no repeat has come to the inbox: %v", taken,
			keys*each, err)
	}
}

func TestOverThreeNodesWhoseLeaderIsKilled(t *testing.T) {
	t.Parallel()
	x, c := newCrossing(t), cluster.New(t, cluster.Options{Nodes: 3})
	quiet := crossJetStream(t, x, c, JetStreamOptions{})
	dead := 0
	x.say(func() {
		var err error
		if dead, err = c.Leader(t.Context(), "said"); err != nil {
			t.Fatal(err)
		}
		if err := c.Kill(dead); err != nil {
			t.Fatal(err)
		}
	})
	x.judge(quiet) // two nodes are enough
	if err := c.Restart(t.Context(), dead); err != nil {
		t.Error(err)
	}
}

func TestOverThreeNodesOfWhichAnotherIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	x, c := newCrossing(t), cluster.New(t, cluster.Options{Nodes: 3})
	quiet := crossJetStream(t, x, c, JetStreamOptions{NoMsgID: true})
	x.say(func() {
		leader, err := c.Leader(t.Context(), "said")
		if err != nil {
			t.Fatal(err)
		}
		follower := (leader + 1) % c.Nodes()
		if err := c.Kill(follower); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(t.Context(), follower); err != nil {
			t.Fatal(err)
		}
	})
	x.judge(quiet)
}
