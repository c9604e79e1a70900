package jetstream

import (
	"strconv"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// uuidHeader is the header that watermill-nats, too, uses for the UUID, so that either end may use that package.
const uuidHeader = "_watermill_message_uuid"

// orders begins the names of headers that are between NATS and its clients: they instruct a server to empty a stream,
// to expire a message, to refuse it. So only the publisher sets them, and never the author of a message.
const orders = "Nats-"

func isOrder(name string) bool {
	return len(name) >= len(orders) && strings.EqualFold(name[:len(orders)], orders)
}

// toWire returns the message of NATS: the payload is the data, and metadata are headers, except orders to the server.
func (p *Publisher) toWire(topic string, m *message.Message) *nats.Msg {
	wire := &nats.Msg{Subject: topic, Data: m.Payload, Header: make(nats.Header, len(m.Metadata)+5)}
	if p.options.Parts > 0 {
		wire.Subject += "." + part(p.options.Key(m), p.options.Parts)
	}
	for name, value := range m.Metadata {
		if !isOrder(name) {
			wire.Header.Set(name, value)
		}
	}
	wire.Header.Set(uuidHeader, m.UUID)
	if !p.options.NoMsgID {
		wire.Header.Set(nats.MsgIdHdr, m.UUID)
	}
	return wire
}

// fromWire never fails. A producer that is not a Watermill program sends no UUID header: the UUID of its message is its
// Nats-Msg-Id, or else its place in the stream. If a header has several values, the first is used.
func fromWire(wire natsjs.Msg, at *natsjs.MsgMetadata) *message.Message {
	id := ""
	metadata := message.Metadata{}
	for name, values := range wire.Headers() {
		switch {
		case name == uuidHeader && len(values) > 0:
			id = values[0]
		case len(values) > 0 && !isOrder(name):
			metadata.Set(name, values[0])
		}
	}
	if id == "" {
		id = wire.Headers().Get(nats.MsgIdHdr)
	}
	if id == "" {
		id = at.Stream + ":" + strconv.FormatUint(at.Sequence.Stream, 10)
	}
	m := message.NewMessage(id, wire.Data())
	m.Metadata = metadata
	return m
}
