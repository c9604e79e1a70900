package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

// ErrClosed is the error of a Publisher or Subscriber after its Close.
var ErrClosed = errors.New("it is closed")

// PublisherOptions are the options of a Publisher. The zero value is the default.
type PublisherOptions struct {
	// Kind returns the kind of a message. If it is nil, the topic is the kind; with Queue the kind is that of KindOf.
	Kind KindFunc

	// Queue sends to one endpoint: topic is its name, whatever endpoint handles the kind. Without Queue each endpoint
	// and each consumer group that handles the kind gets a copy.
	Queue bool

	// Unheard drops messages without a subscriber. Without Unheard they are bus.ErrNoRoute.
	Unheard bool
}

// Publisher is Watermill's message.Publisher over Edda's queues. Safe for concurrent use.
type Publisher struct {
	bus     *bus.Bus
	options PublisherOptions

	calls run.Gate // in progress, of Publish
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher makes a Publisher. It does no I/O, and returns an error if b is nil.
func NewPublisher(b *bus.Bus, o PublisherOptions) (*Publisher, error) {
	if b == nil {
		return nil, errors.New("new publisher: the bus is nil")
	}
	switch {
	case o.Kind != nil:
	case o.Queue:
		o.Kind = KindOf
	default:
		o.Kind = ofTopic
	}
	return &Publisher{bus: b, options: o}, nil
}

// Publish writes the messages in one transaction and returns when it is committed: all of them or none, to be received
// in this order. It is bounded by the context of the first message.
//
// If that context is of a message in hand (of a handler of this package, or of a message that its Subscriber has
// delivered), Publish joins it: the messages commit with the end of the message in hand, or not at all, and Publish
// itself writes nothing. See PublishSeparately.
//
// Errors: bus.ErrNoRoute if no endpoint is subscribed to the kind, or with Queue if the endpoint does not exist (a
// Publish that joins returns nil, and the message in hand fails permanently); a *saga.PermanentError for a message
// beyond Edda's limits (1 MiB of payload, 64 metadata entries of 8 KiB, no name that begins with "edda-"); a
// *bus.OutcomeUnknownError when the connection broke during the COMMIT; ErrAnswered; ErrClosed.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	return p.publish(topic, messages, nil)
}

// PublishTx is Publish in the caller's transaction: nothing is sent unless tx commits. tx may be the transaction of
// TxFromContext.
func (p *Publisher) PublishTx(tx pgx.Tx, topic string, messages ...*message.Message) error {
	if tx == nil {
		return fmt.Errorf("publish to %.80q: the transaction is nil", topic)
	}
	return p.publish(topic, messages, tx)
}

// InTx returns p as a publisher in the caller's transaction, for code that takes a message.Publisher: each Publish of
// it is a PublishTx. Its Close does nothing.
func (p *Publisher) InTx(tx pgx.Tx) message.Publisher { return inTx{p, tx} }

type inTx struct {
	publisher *Publisher
	tx        pgx.Tx
}

func (p inTx) Publish(topic string, messages ...*message.Message) error {
	return p.publisher.PublishTx(p.tx, topic, messages...)
}

func (inTx) Close() error { return nil }

func (p *Publisher) publish(topic string, messages []*message.Message, tx pgx.Tx) error {
	raws, err := p.prepare(topic, messages)
	if err != nil || len(raws) == 0 {
		return err
	}
	if !p.calls.Enter() {
		return fmt.Errorf("publish to %s: the publisher: %w", topic, ErrClosed)
	}
	defer p.calls.Leave()
	ctx := messages[0].Context()
	if err := p.write(ctx, tx, topic, raws); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return nil
}

// prepare checks the topic, and makes the messages ready to be sent.
func (p *Publisher) prepare(topic string, messages []*message.Message) ([]bus.RawMessage, error) {
	raws, err := toRaws(topic, messages, p.options.Kind)
	if err != nil {
		return nil, err
	}
	if p.options.Queue {
		return raws, checkTopic(topic)
	}
	for n := range raws {
		if err := checkTopic(raws[n].Name); err != nil {
			return nil, err
		}
		raws[n].MustRoute = !p.options.Unheard
	}
	return raws, nil
}

const everySubscriber = "*" // for SendRaw

func (p *Publisher) write(ctx context.Context, tx pgx.Tx, topic string, raws []bus.RawMessage) error {
	endpoint := everySubscriber
	if p.options.Queue {
		endpoint = topic
	}
	h := handOf(ctx)
	switch {
	case h != nil && (tx == nil || tx == h.tx):
		return h.publish(endpoint, raws)
	case tx != nil:
		return p.bus.SendRawTx(ctx, tx, endpoint, raws...)
	}
	return p.bus.SendRaw(ctx, endpoint, raws...)
}

// Close waits for calls of Publish that have begun; later calls fail with ErrClosed. The bus stays open.
func (p *Publisher) Close() error {
	p.calls.Close()
	return nil
}
