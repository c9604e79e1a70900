//go:build rabbitmq

package brokers

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
)

func TestCrossingRabbitMQ(t *testing.T) {
	t.Parallel()
	for name, middle := range map[string]func(x *crossing){
		"it is killed": restarts,
		// Both ends take a broker that does not answer for one that is away. What it reads when it goes on was sent
		// long before, and is published a second time by then.
		"it is frozen for longer than its heartbeat": func(x *crossing) {
			x.nodes.Freeze(0)
			x.must(run.Sleep(x.Context(), 5*time.Second)) // five heartbeats
			x.must(x.nodes.Thaw(x.Context(), 0))
		},
		// The second intake takes over, and another relay begins where the first ended.
		"a relay and an intake end": func(x *crossing) {
			x.endTake()
			x.endRelay()
			x.relay()
			x.take()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := rabbit.New(t, rabbit.Options{})
			x := newCrossing(t, Route{Over: RabbitMQ, URL: b.URL(), Topic: "said", Parts: parts}, b)
			x.cross(middle)
		})
	}
}
