package brokers

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp "github.com/rabbitmq/amqp091-go"
)

// RabbitMQOptions of a publisher and a subscriber. The zero value is one queue, of the topic's name.
type RabbitMQOptions struct {
	Parts      int           // queues <topic>.0 … <topic>.<Parts-1> in place of <topic>
	Key        Key           // chooses the part; nil is ByMetadata(ConversationKey)
	Exchange   string        // that all queues are bound to; "" is "edda"
	AckWait    time.Duration // for the answer to one message; 0 is 5 seconds. A relay's Drain should be longer
	Heartbeat  time.Duration // a broker that is silent for one and a half of them is away; 0 is 5 seconds
	MaxMessage int           // the max_message_size of the broker; 0 is 16 MiB, the default of RabbitMQ 4
	Arguments  amqp.Table    // of the queues, beside those of ours
}

// NewRabbitMQPublisher connects to the broker. Unlike the one for JetStream it needs the broker to be there.
func NewRabbitMQPublisher(url string, o RabbitMQOptions, logger watermill.LoggerAdapter) (message.Publisher, error) {
	config, logger := rabbitMQ(url, o, logger)
	publisher, err := wmamqp.NewPublisher(config, logger)
	if err != nil {
		return nil, fmt.Errorf("new publisher to RabbitMQ: %w", err)
	}
	if o.Key == nil {
		o.Key = ByMetadata(ConversationKey)
	}
	if o.AckWait == 0 {
		o.AckWait = 5 * time.Second
	}
	return rabbitParts{publisher, o}, nil
}

// NewRabbitMQSubscriber connects to the broker, which has to be there. Subscribe(queue) declares what is missing, and
// fails when the queue has other settings than ours. A second subscriber of a queue stands by.
func NewRabbitMQSubscriber(url string, o RabbitMQOptions, logger watermill.LoggerAdapter) (*wmamqp.Subscriber, error) {
	config, logger := rabbitMQ(url, o, logger)
	subscriber, err := wmamqp.NewSubscriber(config, logger)
	if err != nil {
		return nil, fmt.Errorf("new subscriber to RabbitMQ: %w", err)
	}
	return subscriber, nil
}

// rabbitMQ is the settings of both, so that both declare the same. They need a logger: watermill-amqp calls a nil one.
func rabbitMQ(url string, o RabbitMQOptions, logger watermill.LoggerAdapter) (wmamqp.Config, watermill.LoggerAdapter) {
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	if o.Exchange == "" {
		o.Exchange = "edda"
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 5 * time.Second
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = 16 << 20
	}
	sameName := func(topic string) string { return topic }
	return wmamqp.Config{
		Connection: wmamqp.ConnectionConfig{
			AmqpURI: url,
			// The defaults are 10 and 30 seconds.
			AmqpConfig: &amqp.Config{Heartbeat: o.Heartbeat, Locale: "en_US", Dial: amqp.DefaultDial(5 * time.Second)},
			// the default grows to a minute, in which a broker that is back has no clients
			Reconnect: &wmamqp.ReconnectConfig{BackoffInitialInterval: 100 * time.Millisecond, BackoffMultiplier: 1.5,
				BackoffRandomizationFactor: 0.5, BackoffMaxInterval: 2 * time.Second},
		},
		Marshaler: rabbitMarshaler{maxMessage: o.MaxMessage},
		// The default exchange acknowledges a message for a queue that is not there, and drops it.
		Exchange: wmamqp.ExchangeConfig{GenerateName: wmamqp.GenerateExchangeNameConstant(o.Exchange), Type: "direct",
			Durable: true, Arguments: amqp.Table{"alternate-exchange": unroutable(o.Exchange)}},
		Queue:     wmamqp.QueueConfig{GenerateName: sameName, Durable: true, Arguments: rabbitQueue(o.Arguments)},
		QueueBind: wmamqp.QueueBindConfig{GenerateRoutingKey: sameName},
		Publish: wmamqp.PublishConfig{
			GenerateRoutingKey: sameName,
			ConfirmDelivery:    true, // without it Publish returns when the message is in a buffer of ours
			// No pool: it loses a channel at each Publish while the connection breaks, and Publish then waits for ever.
			ChannelPoolSize: 0,
		},
		// More would be in hand of the client, behind one that is nacked and comes again.
		Consume:         wmamqp.ConsumeConfig{Qos: wmamqp.QosConfig{PrefetchCount: 1}},
		TopologyBuilder: rabbitTopology{},
	}, logger
}

// unlimited is a delivery limit that is never reached. -1 means none, and then a message that is nacked goes to the end
// of its queue, behind later ones.
const unlimited = int32(1<<31 - 1)

func rabbitQueue(more amqp.Table) amqp.Table {
	all := amqp.Table{
		"x-queue-type":             "quorum",
		"x-single-active-consumer": true, // a second process stands by; two would share a key's messages
		"x-delivery-limit":         unlimited,
		"x-overflow":               "reject-publish", // a queue with a limit refuses; the default drops the oldest
	}
	for name, value := range more {
		all[name] = value
	}
	return all
}

// unroutable names what takes messages for queues that are not there: a queue that has room for none and so has
// RabbitMQ nack them. watermill-amqp does not listen to what Mandatory returns.
func unroutable(exchange string) string { return exchange + ".unroutable" }

// rabbitTopology declares what is missing: the exchanges at the first Publish, and a queue at Subscribe and whenever
// its consumer is made anew.
type rabbitTopology struct{ wmamqp.DefaultTopologyBuilder }

func (b rabbitTopology) ExchangeDeclare(channel *amqp.Channel, exchange string, config wmamqp.Config) error {
	other := unroutable(exchange)
	// a classic queue: one of quorum takes the first message before it refuses
	if _, err := channel.QueueDeclare(other, true, false, false, false,
		amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}); err != nil {
		return fmt.Errorf("declare queue %s: %w", other, err)
	}
	if err := channel.ExchangeDeclare(other, "fanout", true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare exchange %s: %w", other, err)
	}
	if err := channel.QueueBind(other, "", other, false, nil); err != nil {
		return fmt.Errorf("bind queue %s: %w", other, err)
	}
	return b.DefaultTopologyBuilder.ExchangeDeclare(channel, exchange, config)
}

func (b rabbitTopology) BuildTopology(channel *amqp.Channel, p wmamqp.BuildTopologyParams, config wmamqp.Config,
	logger watermill.LoggerAdapter) error {
	if err := b.ExchangeDeclare(channel, p.ExchangeName, config); err != nil {
		return err
	}
	return b.DefaultTopologyBuilder.BuildTopology(channel, p, config, logger)
}

// rabbitParts chooses the queue, because watermill-amqp makes a routing key of the topic alone, and ends a Publish that
// is not answered. watermill-amqp waits for ever, for a broker without room on its disk, or a queue without a leader.
type rabbitParts struct {
	*wmamqp.Publisher
	o RabbitMQOptions
}

func (p rabbitParts) Publish(topic string, all ...*message.Message) error {
	for _, m := range all {
		queue := topic
		if p.o.Parts > 0 {
			queue += "." + part(p.o.Key(m), p.o.Parts)
		}
		// The end of the connection ends all that waits for it; watermill-amqp then makes another.
		late := time.AfterFunc(p.o.AckWait, func() { _ = p.Connection().CloseDeadline(time.Now().Add(time.Second)) })
		err := p.Publisher.Publish(queue, m)
		if late.Stop(); err != nil {
			return fmt.Errorf("publish to queue %s: %w", queue, err)
		}
	}
	return nil
}
