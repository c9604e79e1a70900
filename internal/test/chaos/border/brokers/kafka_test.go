package brokers

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kfake"
)

// The tests named TestKafkaOrKfake run against the brokers of KAFKA_BROKERS, a list with commas. Without it they run
// against kfake, a broker in this process that speaks Kafka's protocol and is not Kafka: it shows that we and sarama
// speak it well, and that faults of the wire lose and double nothing. It shows nothing of Kafka's own replication.

// kafkas is a broker of either sort.
type kafkas struct {
	addresses []string
	fake      *kfake.Cluster // nil: real

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func newKafkas(t *testing.T) *kafkas {
	t.Helper()
	if given := os.Getenv("KAFKA_BROKERS"); given != "" {
		return &kafkas{addresses: strings.Split(given, ",")}
	}
	k := &kafkas{}
	fake, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.ListenFn(k.listen),
		kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	k.fake, k.addresses = fake, fake.ListenAddrs()
	return k
}

// listen remembers the connections, for cut.
func (k *kafkas) listen(network, address string) (net.Listener, error) {
	listener, err := net.Listen(network, address)
	return remembering{listener, k}, err
}

type remembering struct {
	net.Listener
	of *kafkas
}

func (r remembering) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err == nil {
		r.of.mu.Lock()
		r.of.conns = append(r.of.conns, conn)
		r.of.mu.Unlock()
	}
	return conn, err
}

// cut ends all connections at once, in the middle of whatever they carry.
func (k *kafkas) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, conn := range k.conns {
		_ = conn.Close()
	}
	k.conns = nil
}

// topic makes one with a name of its own, of four partitions.
func (k *kafkas) topic(t *testing.T) string {
	t.Helper()
	settings := sarama.NewConfig()
	settings.Version = sarama.V2_1_0_0
	admin, err := sarama.NewClusterAdmin(k.addresses, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	name := "edda." + watermill.NewShortUUID()
	detail := &sarama.TopicDetail{NumPartitions: 4, ReplicationFactor: 1}
	if err := admin.CreateTopic(name, detail, false); err != nil {
		t.Fatal(err)
	}
	return name
}

func (k *kafkas) url() string { return strings.Join(k.addresses, ",") }

func (k *kafkas) subscriber(t *testing.T, group string) *kafka.Subscriber {
	t.Helper()
	return opened[*kafka.Subscriber](t)(NewKafkaSubscriber(k.addresses, group, nil))
}

// pipe is a publisher to a topic of its own. Keys are in a header.
func (k *kafkas) pipe(t *testing.T) *pipe {
	t.Helper()
	return &pipe{T: t, name: k.topic(t),
		out: opened[*kafka.Publisher](t)(NewKafkaPublisher(k.addresses, ByMetadata(KeyHeader), nil))}
}

func TestKafkaOrKfakeCarriesAMessageUnchanged(t *testing.T) {
	t.Parallel()
	k := newKafkas(t)
	p := k.pipe(t)
	p.in = subscribe(t, k.subscriber(t, p.name), p.name)
	p.carries(message.Metadata{"note": " two\r\nlines "})
}

func TestKafkaOrKfakeKeepsAKeyInItsOrder(t *testing.T) {
	t.Parallel()
	k := newKafkas(t)
	p := k.pipe(t)
	const keys, each = 8, 10
	for n := range each {
		for key := range keys {
			m := message.NewMessage(watermill.NewUUID(), []byte(fmt.Sprint(n)))
			m.Metadata.Set(KeyHeader, fmt.Sprint("k", key))
			if err := p.out.Publish(p.name, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	messages := subscribe(t, k.subscriber(t, p.name), p.name)
	next, partitions := map[string]int{}, map[int32]bool{}
	for range keys * each {
		m := receive(t, messages)
		key := m.Metadata.Get(KeyHeader)
		if want := fmt.Sprint(next[key]); string(m.Payload) != want {
			t.Errorf("key %s: message %s came, want %s", key, m.Payload, want)
		}
		next[key]++
		if at, ok := kafka.MessagePartitionFromCtx(m.Context()); ok {
			partitions[at] = true
		}
		m.Ack()
	}
	if len(partitions) < 2 {
		t.Errorf("all keys are in one partition of four: %v", partitions)
	}
}

func TestKafkaOrKfakeRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	p := newKafkas(t).pipe(t)
	unfit(t, "1 MiB and its headers", p.publish(strings.Repeat("x", 1<<20)))
	if err := p.publish(strings.Repeat("x", 1000)); err != nil {
		t.Errorf("a message behind it: %v", err)
	}
}

// A broker that is away is an error, soon, which is not the message's.
func TestKafkaOrKfakeThatIsAwayIsAnErrorThatPasses(t *testing.T) {
	t.Parallel()
	_, err := NewKafkaPublisher([]string{"127.0.0.1:9"}, ByMetadata(KeyHeader), nil)
	passes(t, "no broker listens", err)
	k := newKafkas(t)
	p := k.pipe(t)
	if k.fake == nil { // somebody else's broker stays up
		return
	}
	begun := time.Now()
	k.fake.Close()
	k.cut()
	passes(t, "the brokers are away", p.publish(""))
	if time.Since(begun) > soon {
		t.Errorf("the publisher said so after %v", time.Since(begun))
	}
}
