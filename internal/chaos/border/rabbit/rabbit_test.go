//go:build rabbitmq

package rabbit

import (
	"errors"
	"net"
	"os"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestMain(m *testing.M) {
	RunNode()
	os.Exit(m.Run())
}

// Two brokers run at a time, one is killed and comes back with what it had, and nothing of either is left.
func TestRabbitMQComesBackWithItsQueuesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	one, other := New(t, Options{}), New(t, Options{})
	declare := func(b *Broker, queue string) {
		conn, err := b.Connect()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		channel, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := channel.QueueDeclare(queue, true, false, false, false,
			amqp.Table{"x-queue-type": "quorum"}); err != nil {
			t.Fatal(err)
		}
	}
	declare(one, "mine")
	if err := one.AwaitKept(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Ready("mine"); err == nil {
		t.Error("a killed broker answers")
	}
	if _, err := other.Ready("mine"); err == nil {
		t.Error("the other broker has the queue")
	}
	if err := one.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Ready("mine"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(one.Freeze(), one.Stop(), other.Stop()); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Broker{one, other} {
		if _, err := os.Stat(b.spec.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is left: %v", err)
		}
		for what, port := range map[string]int{"broker": b.spec.Client, "epmd": b.spec.Names} {
			if listens(port, b.spec.Host) || listens(port, "127.0.0.1") {
				t.Errorf("the %s listens still, at port %s", what, strconv.Itoa(port))
			}
		}
	}
}

func listens(port int, host string) bool {
	conn, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
