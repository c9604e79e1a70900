package brokers

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	wmamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// rabbitHeaders is what headers may take together. All of them are in one frame, of 128 KiB by default, and the
	// broker ends the connection of a client that sends a larger one.
	rabbitHeaders = 100_000
	// rabbitName is the longest name of a header. amqp091 cuts a longer one, to another name.
	rabbitName = 255
)

// unfitForRabbit is an error of a message that RabbitMQ will never take.
type unfitForRabbit string

func (e unfitForRabbit) Error() string { return string(e) }

// rabbitMarshaler is the marshaler of watermill-amqp for any author and any producer.
type rabbitMarshaler struct{ maxMessage int }

// isRabbitCommand reports whether RabbitMQ or one of its plugins obeys the header: CC and BCC name further queues. A
// relay publishes with rights that the author of a message may not have.
func isRabbitCommand(name string) bool {
	name = strings.ToLower(name)
	return name == "cc" || name == "bcc" || strings.HasPrefix(name, "x-") || name == wmamqp.MetadataRedeliveredKey
}

// Marshal leaves commands out, and fails for what the broker answers with the end of the channel or of the connection:
// watermill-amqp does not tell why.
func (r rabbitMarshaler) Marshal(m *message.Message) (amqp.Publishing, error) {
	headers, size := amqp.Table{wmamqp.DefaultMessageUUIDHeaderKey: m.UUID}, len(m.UUID)
	for name, value := range m.Metadata {
		if isRabbitCommand(name) || name == wmamqp.DefaultMessageUUIDHeaderKey {
			continue
		}
		if len(name) > rabbitName {
			return amqp.Publishing{}, unfitForRabbit(fmt.Sprintf("a header's name has %d bytes, limit %d", len(name),
				rabbitName))
		}
		headers[name] = value
		size += len(name) + len(value) + len("lSxxxx")
	}
	if size > rabbitHeaders {
		return amqp.Publishing{}, unfitForRabbit(fmt.Sprintf("the headers have %d bytes, limit %d", size,
			rabbitHeaders))
	}
	if len(m.Payload) > r.maxMessage {
		return amqp.Publishing{}, unfitForRabbit(fmt.Sprintf("the message has %d bytes, limit %d", len(m.Payload),
			r.maxMessage))
	}
	p := amqp.Publishing{Headers: headers, Body: m.Payload, DeliveryMode: amqp.Persistent}
	if len(m.UUID) <= rabbitName {
		p.MessageId = m.UUID // for consumers without Watermill
	}
	return p, nil
}

var errNoDelivery = errors.New("the consumer is gone")

// Unmarshal fails for what is no delivery alone: watermill-amqp nacks a message whose unmarshaler fails, and it comes
// again for ever.
func (rabbitMarshaler) Unmarshal(d amqp.Delivery) (*message.Message, error) {
	if d.Acknowledger == nil { // watermill-amqp reads from the closed channel of a consumer that was cancelled
		return nil, errNoDelivery
	}
	id, named := d.Headers[wmamqp.DefaultMessageUUIDHeaderKey]
	if !named {
		id = d.MessageId
	}
	m := message.NewMessage(headerText(id), d.Body)
	m.Metadata = make(message.Metadata, len(d.Headers))
	for name, value := range d.Headers {
		if name != wmamqp.DefaultMessageUUIDHeaderKey {
			m.Metadata.Set(name, headerText(value))
		}
	}
	return m, nil
}

// headerText writes any value of a header: AMQP has numbers, times, lists and tables too.
func headerText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case amqp.Table, []any, amqp.Decimal:
		if text, err := json.Marshal(v); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(value)
}
