//go:build rabbitmq

package brokers

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
)

// rabbits is the way over a RabbitMQ: a relay, queues for the parts of a topic, an intake that nacks every fiftieth
// message, and one that stands by.
type rabbits struct {
	*crossing
	broker              *rabbit.Broker
	endRelay, endIntake func()
	options             RabbitMQOptions
}

func crossRabbitMQ(t *testing.T) *rabbits {
	t.Helper()
	r := &rabbits{crossing: newCrossing(t), broker: rabbit.New(t, rabbit.Options{}),
		options: RabbitMQOptions{Parts: parts, Key: ByMetadata(keyHeader), Heartbeat: time.Second}}
	r.endIntake = r.reader() // its Subscribe makes the queues
	r.reader()
	r.endRelay = r.writer()
	r.must(r.broker.AwaitKept(t.Context(), Subjects("said", parts)...))
	return r
}

// writer runs a relay whose connection ends after it.
func (r *rabbits) writer() (stop func()) {
	r.Helper()
	return r.byKey(rabbitPublisher(r.T, r.broker, r.options), "said")
}

func (r *rabbits) reader() (stop func()) {
	r.Helper()
	s := rabbitSubscriber(r.T, r.broker, r.options)
	return r.take(&reluctant{Subscriber: AllOf(s, Subjects("said", parts)...), x: r.crossing}, "said")
}

// quiet is what no consumer has, and what has not arrived.
func (r *rabbits) quiet() (uint64, error) {
	left, err := r.missing()
	for _, queue := range Subjects("said", parts) {
		ready, readyErr := r.broker.Ready(queue)
		if left += uint64(ready); readyErr != nil {
			err = readyErr
		}
	}
	return left, err
}

func (r *rabbits) judgeRabbits() {
	r.Helper()
	r.judge(r.quiet)
	r.Logf("%d messages were offered to the intakes", r.refusals.Load())
	if r.refusals.Load() < keys*each*51/50 {
		r.Error("no message was nacked")
	}
}

func (r *rabbits) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func TestRabbitMQThatIsKilled(t *testing.T) {
	t.Parallel()
	r := crossRabbitMQ(t)
	r.say(func() {
		r.must(r.broker.Kill())
		r.must(r.broker.Restart(t.Context()))
	})
	r.judgeRabbits()
}

// Both ends take a broker that does not answer for one that is away. What it reads when it goes on was sent long
// before, and is published a second time by then.
func TestRabbitMQThatIsFrozenForLongerThanItsHeartbeat(t *testing.T) {
	t.Parallel()
	r := crossRabbitMQ(t)
	r.say(func() {
		r.must(r.broker.Freeze())
		r.must(run.Sleep(t.Context(), 5*time.Second)) // five heartbeats
		r.must(r.broker.Thaw(t.Context()))
	})
	r.judgeRabbits()
}

// The second intake takes over, and another relay begins where the first ended.
func TestRabbitMQWithARelayAndAnIntakeThatEnd(t *testing.T) {
	t.Parallel()
	r := crossRabbitMQ(t)
	r.say(func() {
		r.endIntake()
		r.endRelay()
		r.writer()
		r.reader()
	})
	r.judgeRabbits()
}
