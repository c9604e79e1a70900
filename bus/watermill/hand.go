package watermill

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ErrAnswered is the error of a Publisher whose call would join a message in hand that has ended: it was acked or
// nacked, it was not answered in time, or its handler has returned.
var ErrAnswered = errors.New("the message in hand has ended: publish before that, or with the context of " +
	"PublishSeparately")

// hand is a message in hand: messages that are published with its context become effects of its step. Receivers and the
// goroutines of handlers may publish while the step ends.
type hand struct {
	tx pgx.Tx // of a handler in a transaction

	mu   sync.Mutex
	step *bus.Context // nil when the step is over
}

type handKey struct{}

// inHand returns ctx as the context of a message in hand.
func inHand(ctx context.Context, h *hand, info saga.Info) context.Context {
	return context.WithValue(context.WithValue(ctx, infoKey{}, info), handKey{}, h)
}

func handOf(ctx context.Context) *hand {
	h, _ := ctx.Value(handKey{}).(*hand)
	return h
}

// end ends the step: no later call joins it.
func (h *hand) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step = nil
}

// publish adds the messages to the sends of the step: all or nothing.
func (h *hand) publish(endpoint string, raws []bus.RawMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.step == nil {
		return ErrAnswered
	}
	for n := range raws {
		raw := &raws[n]
		if !raw.ID.IsZero() { // the step makes a new id, and the receiver gets the UUID back
			raw.Header[uuidHeader], raw.ID = raw.ID.String(), saga.ID{}
		}
		if err := raw.Check(); err != nil {
			return fmt.Errorf("message %d of %d: %w", n+1, len(raws), err)
		}
	}
	for n, raw := range raws {
		if !h.emit(endpoint, raw) {
			return fmt.Errorf("message %d of %d: the step of the message in hand sends too much, and fails: %w", n+1,
				len(raws), saga.ErrTooLarge)
		}
	}
	return nil
}

// emit sends one message with the step.
func (h *hand) emit(endpoint string, raw bus.RawMessage) bool {
	options := make([]saga.SendOption, 0, len(raw.Header)+1)
	for name, value := range raw.Header {
		options = append(options, saga.WithHeader(name, value))
	}
	if endpoint != everySubscriber {
		return !h.step.Send(raw.Raw, append(options, saga.To(endpoint))...).IsZero()
	}
	if raw.MustRoute {
		options = append(options, saga.MustRoute())
	}
	return !h.step.Publish(raw.Raw, options...).IsZero()
}

// PublishSeparately returns a context that keeps a Publisher from joining the message in hand: it commits at once,
// whatever the fate of that message is.
func PublishSeparately(ctx context.Context) context.Context {
	return context.WithValue(ctx, handKey{}, (*hand)(nil))
}

// TxFromContext returns the transaction of a handler of HandleTx or ConsumeTx: rows that are written through it,
// messages that are published with ctx, and the end of the message commit together. See bus.HandleTx for the statements
// that it allows. ok is false for any other context.
func TxFromContext(ctx context.Context) (tx pgx.Tx, ok bool) {
	h := handOf(ctx)
	if h == nil || h.tx == nil {
		return nil, false
	}
	return h.tx, true
}

// PublishWithAck is a middleware of Watermill's Router: it publishes the messages that a handler returns in the
// transaction that ends the message, so that both happen or neither. The Router's Subscriber and Publisher must be of
// this package; with others it changes nothing.
//
//	router.AddMiddleware(watermill.PublishWithAck)
func PublishWithAck(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		produced, err := next(m)
		for _, one := range produced {
			if one != nil && handOf(one.Context()) == nil {
				one.SetContext(m.Context())
			}
		}
		return produced, err
	}
}
