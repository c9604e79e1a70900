package jetstream

import (
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"math"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/nats-io/nats.go"
)

// PublisherOptions are the options of a Publisher. A zero field is a default; a negative number is an error.
type PublisherOptions struct {
	Parts   int                           // subjects <topic>.0 … <topic>.<Parts-1> of one stream, in place of <topic>
	Key     func(*message.Message) string // chooses the part; nil is ByMetadata(ConversationKey)
	AckWait time.Duration                 // for one answer; 0 is 5 s, at most 24 h. A relay's Drain should be longer
	NoMsgID bool                          // the UUID is not sent as Nats-Msg-Id, so that JetStream drops no repeat
	Logger  *slog.Logger                  // nil is slog.Default()
}

const (
	standardAckWait = 5 * time.Second
	batchMax        = 1000 // the server's limit of an atomic batch
)

// Publisher is Watermill's message.Publisher over JetStream. It is safe for concurrent use.
type Publisher struct {
	conn    *nats.Conn
	options PublisherOptions
	refused refusals

	calls run.Gate // in progress, of Publish
}

var _ watermill.BatchPublisher = (*Publisher)(nil)

// NewPublisher makes a Publisher on a connection of Connect, which stays the caller's. It does no I/O. It returns an
// error if an option is out of range, or if the connection buffers messages while it is down or gives up reconnecting.
func NewPublisher(conn *nats.Conn, o PublisherOptions) (*Publisher, error) {
	var f option.Faults
	f.Add(check(conn))
	f.Int("Parts", &o.Parts, 0, 0, math.MaxInt)
	f.Duration("AckWait", &o.AckWait, standardAckWait, 0, 24*time.Hour)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("new publisher: %w", err)
	}
	if o.Key == nil {
		o.Key = ByMetadata(ConversationKey)
	}
	o.Logger = handlers.Logger(o.Logger)
	return &Publisher{conn: conn, options: o}, nil
}

// BatchMax returns the most messages that Publish takes at a time: 1,000.
func (p *Publisher) BatchMax() int { return batchMax }

// Publish returns when JetStream has stored the messages, in this order: all of them or none, if the stream has
// AllowAtomicPublish. Without it they are stored one at a time up to the first failure, and the error names that
// message. So are they when some are stored already, within the duplicate window of the stream; a message that is
// stored already is no error. Publish is bounded by the context of the first message, and by AckWait for each answer.
//
// Errors: a *saga.PermanentError for a message that NATS can never take, see Unfit; an error at once, while the
// connection is away; an error for a nil message or more than 1,000 messages; watermill.ErrClosed. After any other
// error the messages may be stored or not: publish them again with their UUIDs.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if !p.calls.Enter() {
		return fmt.Errorf("publish to %s: the publisher: %w", topic, watermill.ErrClosed)
	}
	defer p.calls.Leave()
	wire := make([]*nats.Msg, len(messages))
	for n, m := range messages {
		if m == nil {
			return fmt.Errorf("publish to %s: message %d of %d is nil", topic, n+1, len(messages))
		}
		wire[n] = p.toWire(topic, m)
	}
	if err := p.publish(messages[0].Context(), topic, wire); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return nil
}

func (p *Publisher) publish(ctx context.Context, topic string, wire []*nats.Msg) error {
	switch {
	case len(wire) > batchMax:
		return fmt.Errorf("%d messages: JetStream takes at most %d at a time", len(wire), batchMax)
	case len(wire) == 1:
		return p.publishOne(ctx, wire[0])
	case p.refused.lately(topic):
		return p.oneByOne(ctx, wire, 0)
	}
	first, err := p.publishAtomically(ctx, wire)
	switch {
	case errors.Is(err, errRepeat):
		return p.oneByOne(ctx, wire, 0)
	case errors.Is(err, errNoBatches):
		if p.refused.note(topic) {
			p.options.Logger.Warn("edda: a stream accepts no batches, so messages are published one by one: set its "+
				"AllowAtomicPublish", "topic", topic, "error", err)
		}
		return p.oneByOne(ctx, wire, first)
	}
	return err
}

// oneByOne publishes from a place on, and stops at the first failure.
func (p *Publisher) oneByOne(ctx context.Context, wire []*nats.Msg, from int) error {
	for n, m := range wire[from:] {
		unbatched(m)
		if err := p.publishOne(ctx, m); err != nil {
			return fmt.Errorf("message %d of %d, and no later one: %w", from+n+1, len(wire), err)
		}
	}
	return nil
}

func (p *Publisher) publishOne(ctx context.Context, m *nats.Msg) error {
	_, err := p.ask(ctx, m)
	return err
}

// Close waits for calls of Publish that have begun; later ones fail with watermill.ErrClosed. The connection stays
// open.
func (p *Publisher) Close() error {
	p.calls.Close()
	return nil
}
