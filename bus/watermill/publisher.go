package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

// ErrClosed is returned by a Publisher or Subscriber after its Close.
var ErrClosed = errors.New("it is closed")

// PublisherOptions of a Publisher. The zero value is the default.
type PublisherOptions struct {
	Kind KindFunc // of the messages; nil is KindOf

	// Events publishes instead of sending: topic is then the kind of the messages, whatever Kind says, and each
	// consumer group of the topic and each endpoint that handles the kind gets a copy. Without it topic is the one
	// queue that the messages go to.
	Events bool
}

// Publisher is Watermill's message.Publisher over Edda's queues. Safe for concurrent use.
type Publisher struct {
	bus     *bus.Bus
	options PublisherOptions

	calls run.Gate // of Publish
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher makes a Publisher. It does no I/O, and fails when b is nil.
func NewPublisher(b *bus.Bus, o PublisherOptions) (*Publisher, error) {
	if b == nil {
		return nil, errors.New("new publisher: the bus is nil")
	}
	if o.Kind == nil {
		o.Kind = KindOf
	}
	return &Publisher{bus: b, options: o}, nil
}

// Publish writes the messages in one transaction and one round trip, and returns when it is committed: all of them
// or none, to be received in this order. It is bounded by the context of the first message.
//
// Errors: bus.ErrNoRoute when no endpoint has ever subscribed to the topic; a *saga.PermanentError for a message beyond
// Edda's limits (1 MiB of payload, 64 metadata entries of 8 KiB, no name that begins with "edda-"); a
// *bus.OutcomeUnknownError when the connection broke at the wrong moment; ErrClosed.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	return p.publish(topic, messages, func(ctx context.Context, raws []bus.RawMessage) error {
		if p.options.Events {
			return p.bus.PublishRaw(ctx, raws...)
		}
		return p.bus.SendRaw(ctx, topic, raws...)
	})
}

// PublishTx is Publish in the caller's transaction: nothing is sent unless tx commits. It sends to the queue topic,
// also with Events.
func (p *Publisher) PublishTx(tx pgx.Tx, topic string, messages ...*message.Message) error {
	return p.publish(topic, messages, func(ctx context.Context, raws []bus.RawMessage) error {
		return p.bus.SendRawTx(ctx, tx, topic, raws...)
	})
}

func (p *Publisher) publish(topic string, messages []*message.Message,
	send func(context.Context, []bus.RawMessage) error) error {
	if err := checkTopic(topic); err != nil {
		return err
	}
	kind := p.options.Kind
	if p.options.Events {
		kind = func(topic string, _ *message.Message) string { return topic }
	}
	raws, err := toRaws(topic, messages, kind)
	if err != nil || len(raws) == 0 {
		return err
	}
	if !p.calls.Enter() {
		return fmt.Errorf("publish to %s: the publisher: %w", topic, ErrClosed)
	}
	defer p.calls.Leave()
	if err := send(messages[0].Context(), raws); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return nil
}

// Close waits for the calls of Publish that have begun, and refuses others. The bus stays open.
func (p *Publisher) Close() error {
	p.calls.Close()
	return nil
}
