package watermill

import (
	"context"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// CQRSMarshaler is Watermill's JSONMarshaler for commands and events that sagas handle or send: their name is the kind
// if the value is a saga.Message, else the type in lower case, and messages that come from a saga have their kind as
// name. Give it to the buses and processors of Watermill's CQRS component.
type CQRSMarshaler struct{ cqrs.JSONMarshaler }

// NewCQRSMarshaler returns a CQRSMarshaler that names values by their kind or type.
func NewCQRSMarshaler() CQRSMarshaler {
	return CQRSMarshaler{cqrs.JSONMarshaler{GenerateName: nameOf}}
}

func nameOf(v any) string {
	if m, ok := v.(saga.Message); ok {
		return m.Kind()
	}
	return strings.ToLower(cqrs.StructName(v))
}

// NameFromMessage returns the name that Marshal has set, or the kind.
func (m CQRSMarshaler) NameFromMessage(of *message.Message) string {
	if name := m.JSONMarshaler.NameFromMessage(of); name != "" {
		return name
	}
	return of.Metadata.Get(KindKey)
}

// CQRSHandlers makes parts of an endpoint, in place of a command or event processor of Watermill's CQRS component.
// A handler runs like a handler of Consume, or with Tx like a handler of ConsumeTx. A message whose name is not the
// handler's, or that cannot be unmarshalled, becomes a dead letter at once. Messages that the handlers publish
// with their context, by a bus of the component over a Publisher, commit with the end of the message in hand.
//
// An endpoint has one handler for each kind; a second handler is a fault of NewEndpoint. Two handlers of one event
// belong in two endpoints, which get a copy each, as they would belong in two consumer groups.
type CQRSHandlers struct {
	Marshaler  cqrs.CommandEventMarshaler // nil is NewCQRSMarshaler()
	Topic      func(name string) string   // of a command or event, by its name; nil is the name
	Tx         bool                       // handlers run as with HandleTx; without it as with Handle
	Middleware []message.HandlerMiddleware
}

// Commands returns a part for each handler.
func (h CQRSHandlers) Commands(handlers ...cqrs.CommandHandler) (parts []bus.Part) {
	for _, one := range handlers {
		parts = append(parts, h.part(one.HandlerName(), one.NewCommand, one.Handle))
	}
	return parts
}

// Events returns a part for each handler.
func (h CQRSHandlers) Events(handlers ...cqrs.EventHandler) (parts []bus.Part) {
	for _, one := range handlers {
		parts = append(parts, h.part(one.HandlerName(), one.NewEvent, one.Handle))
	}
	return parts
}

func (h CQRSHandlers) part(handler string, create func() any, handle func(context.Context, any) error) bus.Part {
	marshaler := h.Marshaler
	if marshaler == nil {
		marshaler = NewCQRSMarshaler()
	}
	name := marshaler.Name(create())
	topic := name
	if h.Topic != nil {
		topic = h.Topic(name)
	}
	consume := Consume
	if h.Tx {
		consume = ConsumeTx
	}
	return consume(topic, func(m *message.Message) error {
		if got := marshaler.NameFromMessage(m); got != name {
			return saga.Permanent(fmt.Errorf("handler %s of %s: the message is %.80q", handler, name, got))
		}
		v := create()
		if err := marshaler.Unmarshal(m, v); err != nil {
			return saga.Permanent(fmt.Errorf("handler %s: unmarshal %s: %w", handler, name, err))
		}
		return handle(cqrs.CtxWithOriginalMessage(m.Context(), m), v)
	}, h.Middleware...)
}
