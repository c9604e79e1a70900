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

// A broker that is killed comes back with what it had, and nothing of one that is frozen at its end is left.
func TestRabbitMQComesBackWithItsQueuesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	one := New(t, Options{})
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
	if err := one.Kill(0); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Ready("mine"); err == nil {
		t.Error("a killed broker answers")
	}
	if err := one.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Ready("mine"); err != nil {
		t.Error(err)
	}
	one.Freeze(0)
	if err := one.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(one.spec.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
	for what, port := range map[string]int{"broker": one.spec.Client, "epmd": one.spec.Names} {
		if listens(port, one.spec.Host) || listens(port, "127.0.0.1") {
			t.Errorf("the %s listens still, at port %d", what, port)
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
