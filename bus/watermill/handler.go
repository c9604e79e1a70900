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
// outside of any transaction: see bus.Handle. The topic is the kind. What f returns is published by p to publishTopic.
// If p is a Publisher of this package, that and everything that f publishes with the message's context is written in
// the transaction that ends the message; any other publisher is called after f and before that transaction, at least
// once.
//
// The endpoint's policy decides about errors, not the middleware: Retry of Watermill calls f again within one attempt,
// and what the failed call published is sent too. The first middleware is the outermost, and they are around f alone;
// bus.Use has those for the whole endpoint.
func Handle(topic, publishTopic string, p message.Publisher, f message.HandlerFunc,
	m ...message.HandlerMiddleware) bus.Part {
	h, err := newHandler(topic, publishTopic, p, f, m)
	if err != nil {
		return bus.Fault(err)
	}
	return h.part(false)
}

// HandleTx is Handle inside of the transaction that ends the message: see bus.HandleTx, and TxFromContext.
func HandleTx(topic, publishTopic string, p message.Publisher, f message.HandlerFunc,
	m ...message.HandlerMiddleware) bus.Part {
	h, err := newHandler(topic, publishTopic, p, f, m)
	if err != nil {
		return bus.Fault(err)
	}
	return h.part(true)
}

// Consume is Handle for a handler that returns no messages.
func Consume(topic string, f message.NoPublishHandlerFunc, m ...message.HandlerMiddleware) bus.Part {
	return consume(topic, f, m, false)
}

// ConsumeTx is HandleTx for a handler that returns no messages.
func ConsumeTx(topic string, f message.NoPublishHandlerFunc, m ...message.HandlerMiddleware) bus.Part {
	return consume(topic, f, m, true)
}

func consume(topic string, f message.NoPublishHandlerFunc, m []message.HandlerMiddleware, inTx bool) bus.Part {
	if f == nil {
		return bus.Fault(fmt.Errorf("the handler of topic %.80q is nil", topic))
	}
	h, err := newHandler(topic, "", nil, func(m *message.Message) ([]*message.Message, error) { return nil, f(m) }, m)
	if err != nil {
		return bus.Fault(err)
	}
	return h.part(inTx)
}

// handler is a handler of Watermill as a part of an endpoint.
type handler struct {
	topic        string
	call         message.HandlerFunc // with its middleware
	publisher    message.Publisher
	publishTopic string
}

func newHandler(topic, publishTopic string, p message.Publisher, f message.HandlerFunc,
	m []message.HandlerMiddleware) (*handler, error) {
	faults := []error{checkTopic(topic)}
	if f == nil {
		faults = append(faults, fmt.Errorf("the handler of topic %.80q is nil", topic))
	}
	if publishTopic != "" && p == nil {
		faults = append(faults, fmt.Errorf("the handler of topic %.80q publishes to %.80q, and its publisher is nil",
			topic, publishTopic))
	}
	if slices.ContainsFunc(m, func(one message.HandlerMiddleware) bool { return one == nil }) {
		faults = append(faults, fmt.Errorf("a middleware of topic %.80q is nil", topic))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, one := range slices.Backward(m) {
		f = one(f)
	}
	return &handler{topic: topic, call: Together(f), publisher: p, publishTopic: publishTopic}, nil
}

func (h *handler) part(inTx bool) bus.Part {
	if !inTx {
		return bus.Handle(func(c *bus.Context, m saga.Raw) error { return h.handle(c, nil, m) }, bus.OfKind(h.topic))
	}
	return bus.HandleTx(h.handle, bus.OfKind(h.topic))
}

var errNowhere = errors.New("the handler returned messages, and has no publisher")

// handle is one attempt. Effects of a failed one are not sent.
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
