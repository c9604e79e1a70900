package brokers

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"
)

// JetStreamOptions of a publisher. The zero value publishes to the subject that is the topic.
type JetStreamOptions struct {
	Parts   int           // subjects <topic>.0 … <topic>.<Parts-1> in place of <topic>
	Key     Key           // chooses the part; nil is ByMetadata(ConversationKey)
	NoMsgID bool          // JetStream is not told the id, and drops no repeat
	AckWait time.Duration // for the answer to one message; 0 is 5 seconds. A relay's Drain should be longer
}

// NewJetStreamPublisher connects to the servers of url, which may be away yet.
func NewJetStreamPublisher(url string, o JetStreamOptions, logger watermill.LoggerAdapter) (*wmnats.Publisher, error) {
	if o.Key == nil {
		o.Key = ByMetadata(ConversationKey)
	}
	if o.AckWait == 0 {
		o.AckWait = 5 * time.Second
	}
	publisher, err := wmnats.NewPublisher(wmnats.PublisherConfig{
		URL:         url,
		NatsOptions: connection(),
		Marshaler:   natsParts{parts: o.Parts, key: o.Key},
		JetStream: wmnats.JetStreamConfig{
			// AutoProvision asks for the stream before each Publish, and makes one of a single replica.
			TrackMsgId: !o.NoMsgID,
			// Through the connection, not by PublishOptions: watermill-nats appends the id of each message to that
			// slice, and two goroutines that publish would share its spare room, and swap ids.
			ConnectOptions: []nats.JSOpt{nats.MaxWait(o.AckWait)},
		},
	}, logger)
	if err != nil {
		return nil, fmt.Errorf("new publisher to %s: %w", url, err)
	}
	return publisher, nil
}

// connection is for one that outlives its server.
func connection() []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), // the default gives up after 60 tries, for ever
		nats.ReconnectWait(100 * time.Millisecond),
		nats.RetryOnFailedConnect(true), // the process may start before the broker does
		// no buffer: a message given while away is an error now, and is not sent later behind our back
		nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second), // a server that hangs is noticed in seconds, in place of four minutes
	}
}

// natsParts is the marshaler of watermill-nats with the subject chosen by key, and without headers that are orders to
// the server: those of a message are its author's, and a publisher has rights that an author may not have.
type natsParts struct {
	wmnats.NATSMarshaler
	parts int
	key   Key
}

func (n natsParts) Marshal(topic string, m *message.Message) (*nats.Msg, error) {
	msg, err := n.NATSMarshaler.Marshal(topic, m)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(msg.Header, func(name string, _ []string) bool { return isOrder(name) })
	if n.parts > 0 {
		msg.Subject += "." + part(n.key(m), n.parts)
	}
	return msg, nil
}

// isOrder tells of a header that is between NATS and its clients, such as Nats-Rollup, which empties a stream.
func isOrder(name string) bool { return strings.HasPrefix(strings.ToLower(name), "nats-") }

// Subjects are the topics that a part of the intake subscribes to, one each.
func Subjects(topic string, parts int) []string {
	if parts == 0 {
		return []string{topic}
	}
	subjects := make([]string, parts)
	for i := range subjects {
		subjects[i] = topic + "." + strconv.Itoa(i)
	}
	return subjects
}

// NewJetStreamSubscriber listens to durable push consumers that exist already: Subscribe(subject) takes messages of the
// consumer that name gives for the subject, in the stream. A consumer is the queue group of its name, too, so that
// a second process waits and does not take every message a second time.
//
// AckWait is the consumer's; after it the message is given again.
func NewJetStreamSubscriber(url string, o ConsumerOf, logger watermill.LoggerAdapter) (*wmnats.Subscriber, error) {
	subscriber, err := wmnats.NewSubscriber(wmnats.SubscriberConfig{
		URL:              url,
		NatsOptions:      connection(),
		QueueGroupPrefix: o.Name,
		SubscribersCount: max(o.InHand, 1),
		AckWaitTimeout:   o.AckWait,
		Unmarshaler:      natsID{stream: o.Stream},
		// A nack means that the database is away: the intake has waited already, this is for other processes.
		NakDelay: wmnats.NewStaticDelay(100 * time.Millisecond),
		SubjectCalculator: func(name, topic string) *wmnats.SubjectDetail {
			return &wmnats.SubjectDetail{Primary: topic, QueueGroup: Consumer(name, topic)}
		},
		JetStream: wmnats.JetStreamConfig{
			// an ack that gets lost is a message given again, and the inbox drops it: no reason to wait
			AckAsync:          true,
			DurablePrefix:     o.Name,
			DurableCalculator: Consumer,
			// A consumer that exists is used, and one that Subscribe makes goes with its subscription, and its position
			// with it. Bind would say so; it takes one name for all topics.
			//
			// Without ManualAck nats.go acknowledges whatever the handler of watermill-nats returns from, and it
			// returns from a message that nobody has answered in time, and from one in hand when the subscription ends.
			// Both would be lost.
			SubscribeOptions: []nats.SubOpt{nats.BindStream(o.Stream), nats.ManualAck()},
		},
	}, logger)
	if err != nil {
		return nil, fmt.Errorf("new subscriber to %s: %w", url, err)
	}
	return subscriber, nil
}

// ConsumerOf says which consumers a subscriber listens to.
type ConsumerOf struct {
	Stream  string
	Name    string        // of the application: its consumers are called <name>_<subject>
	AckWait time.Duration // that of the consumers; 0 is 30 seconds
	InHand  int           // messages of a subject at a time; 0 is 1. More are in no order
}

// Consumer is the name of the durable consumer of a subject. A dot may not be in it.
func Consumer(name, subject string) string {
	plain := []byte(name + "_" + subject)
	for i, c := range plain {
		if c == '.' {
			plain[i] = '_'
		}
	}
	return string(plain)
}

// natsID is the unmarshaler of watermill-nats for any producer: one that is no Watermill program has no UUID header,
// and its message gets its Nats-Msg-Id, or else its place in the stream, as id. It never fails: watermill-nats leaves a
// message whose unmarshaler fails unanswered, to come again for ever.
type natsID struct{ stream string }

func (n natsID) Unmarshal(msg *nats.Msg) (*message.Message, error) {
	metadata := message.Metadata{}
	id := ""
	for name, values := range msg.Header {
		switch {
		case name == wmnats.WatermillUUIDHdr && len(values) > 0:
			id = values[0]
		case len(values) > 0 && !isOrder(name):
			metadata.Set(name, values[0])
		}
	}
	if id == "" {
		id = msg.Header.Get(nats.MsgIdHdr)
	}
	if at, err := msg.Metadata(); id == "" && err == nil {
		id = n.stream + ":" + strconv.FormatUint(at.Sequence.Stream, 10)
	}
	m := message.NewMessage(id, msg.Data)
	m.Metadata = metadata
	return m, nil
}
