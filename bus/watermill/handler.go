package watermill

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Handle makes an endpoint handle the messages of a topic with a handler of Watermill, as AddHandler of a Router would,
// outside of any transaction: see bus.Handle. The topic is the kind. p publishes the messages that f returns to
// publishTopic. If p is a Publisher of this package, these messages and all messages that f publishes with the
// message's context are written in the transaction that ends the message; any other publisher is called after f and
// before that transaction, at least once. An invalid topic and a nil f are faults.
//
// The endpoint's policy decides about errors, not the middleware: Watermill's Retry calls f again within one attempt,
// and messages that the failed call published are sent too. The first middleware is the outermost, and they are around
// f alone; bus.Use puts middleware around the whole endpoint.
func Handle(topic, publishTopic string, p message.Publisher, f message.HandlerFunc,
	m ...message.HandlerMiddleware) bus.Part {
	return newPart(&handler{topic: topic, call: f, publisher: p, publishTopic: publishTopic}, m, false)
}

// HandleTx is Handle inside of the transaction that ends the message: see bus.HandleTx, and TxFromContext.
func HandleTx(topic, publishTopic string, p message.Publisher, f message.HandlerFunc,
	m ...message.HandlerMiddleware) bus.Part {
	return newPart(&handler{topic: topic, call: f, publisher: p, publishTopic: publishTopic}, m, true)
}

// Consume is Handle for a handler that returns no messages.
func Consume(topic string, f message.NoPublishHandlerFunc, m ...message.HandlerMiddleware) bus.Part {
	return newPart(&handler{topic: topic, call: silent(f)}, m, false)
}

// ConsumeTx is HandleTx for a handler that returns no messages.
func ConsumeTx(topic string, f message.NoPublishHandlerFunc, m ...message.HandlerMiddleware) bus.Part {
	return newPart(&handler{topic: topic, call: silent(f)}, m, true)
}

func silent(f message.NoPublishHandlerFunc) message.HandlerFunc {
	if f == nil {
		return nil
	}
	return func(m *message.Message) ([]*message.Message, error) { return nil, f(m) }
}

// handler is a handler of Watermill as a part of an endpoint.
type handler struct {
	topic        string
	call         message.HandlerFunc // with its middleware
	publisher    message.Publisher
	publishTopic string
}

// newPart makes a part of h, with the middleware around its call.
func newPart(h *handler, m []message.HandlerMiddleware, inTx bool) bus.Part {
	faults := []error{checkTopic(h.topic)}
	if h.call == nil {
		faults = append(faults, fmt.Errorf("the handler of topic %.80q is nil", h.topic))
	}
	if h.publishTopic != "" && h.publisher == nil {
		faults = append(faults, fmt.Errorf("the handler of topic %.80q publishes to %.80q, and its publisher is nil",
			h.topic, h.publishTopic))
	}
	if slices.ContainsFunc(m, func(one message.HandlerMiddleware) bool { return one == nil }) {
		faults = append(faults, fmt.Errorf("a middleware of topic %.80q is nil", h.topic))
	}
	if err := errors.Join(faults...); err != nil {
		return bus.InvalidPart(err)
	}
	for _, one := range slices.Backward(m) {
		h.call = one(h.call)
	}
	h.call = PublishWithAck(h.call)
	if inTx {
		return bus.HandleTx(h.handle, bus.OfKind(h.topic))
	}
	return bus.Handle(func(c *bus.Context, raw saga.Raw) error { return h.handle(c, nil, raw) }, bus.OfKind(h.topic))
}

var errNowhere = errors.New("the handler returned messages, and has no publisher")

// handle is one attempt. Effects of a failed attempt are not sent.
func (h *handler) handle(c *bus.Context, tx pgx.Tx, raw saga.Raw) error {
	in := &hand{step: c, tx: tx}
	defer in.end()
	info := c.Info()
	m := fromDelivery(&saga.Delivery{Info: info, Body: raw.Body})
	m.SetContext(inHand(c, in, info))
	produced, err := h.call(m)
	switch {
	case err != nil || len(produced) == 0:
		return err
	case h.publisher == nil:
		return saga.Permanent(errNowhere)
	}
	return h.publisher.Publish(h.publishTopic, produced...)
}
