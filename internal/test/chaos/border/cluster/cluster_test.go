package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) {
	RunNode()
	os.Exit(m.Run())
}

func TestANodeKeepsItsMessagesThroughSIGKILL(t *testing.T) {
	t.Parallel()
	c := New(t, Options{})
	story(t, c, 1)
}

func TestThreeNodesGoOnWithoutTheLeader(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: 3})
	story(t, c, 3)
}

// A leader that is frozen is followed by another, and knows it when it goes on.
func TestThreeNodesGoOnWithoutAFrozenLeader(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: 3})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	if err := c.CreateStream(ctx, "orders", StreamOptions{Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	frozen, err := c.Leader(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	c.Freeze(frozen)
	err = nodes.Await(ctx, func(ctx context.Context) error {
		if now, err := c.Leader(ctx, "orders"); err != nil || now == frozen {
			return fmt.Errorf("node %d leads: %w", now, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Thaw(ctx, frozen); err != nil {
		t.Fatal(err)
	}
	if now, err := c.Leader(ctx, "orders"); err != nil || now == frozen {
		t.Errorf("node %d leads, %v", now, err)
	}
}

// story publishes, kills the leader, publishes if somebody is left, brings the leader back, and counts.
func story(t *testing.T, c *Cluster, replicas int) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	if err := c.CreateStream(ctx, "orders", StreamOptions{Replicas: replicas}); err != nil {
		t.Fatal(err)
	}
	conn, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(name string) {
		t.Helper()
		err := nodes.Await(ctx, func(ctx context.Context) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := js.Publish(short, "orders", []byte(name), jetstream.WithMsgID(name))
			return err
		})
		if err != nil {
			t.Fatalf("publish %s: %v", name, err)
		}
	}
	for i := range 100 {
		publish(fmt.Sprint("before ", i))
	}
	leader, err := c.Leader(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(leader); err != nil {
		t.Fatal(err)
	}
	if c.Kill(leader) == nil {
		t.Error("a node that was down was killed once more")
	}
	want := uint64(100)
	if replicas > 1 {
		for i := range 100 {
			publish(fmt.Sprint("without ", i))
		}
		want += 100
		now, err := c.Leader(ctx, "orders")
		if err != nil || now == leader {
			t.Errorf("node %d leads and is dead: %v", leader, err)
		}
	}
	if err := c.Restart(ctx, leader); err != nil {
		t.Fatal(err)
	}
	publish("after")
	if held, _, err := c.Messages(ctx, "orders"); err != nil || held != want+1 {
		t.Errorf("the stream holds %d messages, want %d: %v", held, want+1, err)
	}
}

func TestAClusterHasOneNodeOrThree(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Options{Nodes: 2}); err == nil {
		t.Error("a cluster of two nodes was started, which has no majority without one of them")
	}
}
