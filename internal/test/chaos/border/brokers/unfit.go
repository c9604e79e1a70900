package brokers

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"
	"github.com/nats-io/nats.go"
)

// streamTooLarge is JetStream's error code for a message beyond the max_msg_size of its stream.
const streamTooLarge = 10054

// Unfit tells the errors of Publish that say the message itself is nothing that the broker takes: it is too large, or
// NATS or RabbitMQ has no way to write its headers. No waiting helps, and a relay makes a dead letter of it.
// Give it as RelayOptions.Permanent.
//
// A stream that is full, a subject that no stream has, a node that is away are not among them: these pass.
func Unfit(err error) bool {
	var ofStream *nats.APIError
	var ofSarama sarama.ConfigurationError
	var ofRabbit unfitForRabbit
	switch {
	case errors.As(err, &ofRabbit):
		return true
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadHeaderMsg),
		errors.Is(err, sarama.ErrMessageSizeTooLarge):
		return true
	case errors.As(err, &ofStream):
		return ofStream.ErrorCode == streamTooLarge
	case errors.As(err, &ofSarama): // sarama knows Producer.MaxMessageBytes by this text alone
		return strings.Contains(string(ofSarama), "larger than configured Producer.MaxMessageBytes")
	}
	return false
}
