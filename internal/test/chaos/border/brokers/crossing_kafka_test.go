package brokers

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// missing asks the database there: what a group has left to read is told by kfake and by Kafka in ways of their own.
func (x *crossing) missing() (uint64, error) {
	return uint64(max(0, keys*each-len(x.arrived()))), nil
}

// Members come and go, so that partitions move from one to the other while messages are in hand.
func TestKafkaOrKfakeWithMembersThatComeAndGo(t *testing.T) {
	t.Parallel()
	x, k := newCrossing(t), newKafkas(t)
	topic := k.topic(t)
	x.start(k.publisher(t, ByMetadata(keyHeader)), k.subscriber(t, topic), topic)
	x.say(func() {
		guest := k.subscriber(t, topic)
		if _, err := guest.Subscribe(t.Context(), topic); err != nil { // it takes partitions and answers nothing
			t.Fatal(err)
		}
		if err := guest.Close(); err != nil {
			t.Fatal(err)
		}
		x.take(k.subscriber(t, topic), topic) // and another that stays
	})
	x.judge(x.missing)
}

// The wire breaks, leaders and the coordinator of the group move, and answers to what was written are errors.
func TestKafkaOrKfakeWhoseConnectionsBreak(t *testing.T) {
	t.Parallel()
	x, k := newCrossing(t), newKafkas(t)
	topic := k.topic(t)
	x.start(k.publisher(t, ByMetadata(keyHeader)), k.subscriber(t, topic), topic)
	x.say(func() {
		if k.fake == nil { // nothing of somebody else's broker is broken
			return
		}
		k.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.NotEnoughReplicasAfterAppend,
			Count: 5})
		k.cut()
		k.fake.ShufflePartitionLeaders()
		k.fake.RehashCoordinators()
		k.cut()
	})
	x.judge(x.missing)
}
