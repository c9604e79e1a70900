package brokers

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

// KafkaMarshaler puts messages of one key into one partition.
func KafkaMarshaler(key Key) kafka.MarshalerUnmarshaler {
	return kafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) { return key(m), nil })
}

// NewKafkaPublisher connects to the brokers. Unlike the one for JetStream it needs one of them to be there.
func NewKafkaPublisher(brokers []string, key Key, logger watermill.LoggerAdapter) (*kafka.Publisher, error) {
	settings := kafka.DefaultSaramaSyncPublisherConfig()
	settings.Version = sarama.V2_1_0_0
	// the default is the leader alone, which may die with what it promised
	settings.Producer.RequiredAcks = sarama.WaitForAll
	// sarama's loses: it takes a number of a sequence that was used for success
	settings.Producer.Idempotent = false
	settings.Net.MaxOpenRequests = 1 // no request overtakes one that is repeated
	settings.Producer.Retry.Max = 3  // the relay repeats for ever, and knows how to wait
	settings.Producer.Retry.Backoff = 100 * time.Millisecond
	settings.Producer.Timeout = 5 * time.Second
	settings.Metadata.Retry.Max, settings.Metadata.Retry.Backoff = 3, 100*time.Millisecond
	settings.Net.DialTimeout, settings.Net.ReadTimeout, settings.Net.WriteTimeout = 5*time.Second, 10*time.Second,
		10*time.Second
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Marshaler: KafkaMarshaler(key),
		OverwriteSaramaConfig: settings}, logger)
	if err != nil {
		return nil, fmt.Errorf("new publisher to %v: %w", brokers, err)
	}
	return publisher, nil
}

// NewKafkaSubscriber is a member of the group. Each partition has one message in hand, so their number is how many
// messages one transaction of the intake may gather.
func NewKafkaSubscriber(brokers []string, group string, logger watermill.LoggerAdapter) (*kafka.Subscriber, error) {
	settings := kafka.DefaultSaramaSubscriberConfig()
	settings.Version = sarama.V2_1_0_0
	// the default is newest: a new group would miss what was there
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Offsets.Retention = 0 // the broker's
	settings.Consumer.Retry.Backoff = 200 * time.Millisecond
	settings.Consumer.Group.Rebalance.Timeout = 30 * time.Second // longer than a transaction of the intake may take
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: group, Unmarshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: settings,
		NackResendSleep: 100 * time.Millisecond, ReconnectRetrySleep: 200 * time.Millisecond,
	}, logger)
	if err != nil {
		return nil, fmt.Errorf("new subscriber to %v: %w", brokers, err)
	}
	return subscriber, nil
}
