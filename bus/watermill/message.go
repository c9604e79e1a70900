package watermill

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// KindKey is the metadata that holds the kind of a message: readers of Edda's queues set it, and writers obey it.
const KindKey = "edda_kind"

// DefaultKind is the kind of a message whose topic is no valid kind.
const DefaultKind = "watermill.message"

// uuidHeader keeps a UUID that is not in the form of one: Watermill allows any text.
const uuidHeader = "watermill-uuid"

// KindFunc returns the kind of a message that is published to topic.
type KindFunc func(topic string, m *message.Message) string

// KindOf returns the metadata under KindKey, else the topic if it is a valid kind, else DefaultKind, which no saga
// handles.
func KindOf(topic string, m *message.Message) string {
	if kind := m.Metadata.Get(KindKey); kind != "" {
		return kind
	}
	if saga.CheckName(topic) == nil {
		return topic
	}
	return DefaultKind
}

// ofTopic returns the topic as the kind. It is the default of a Publisher.
func ofTopic(topic string, _ *message.Message) string { return topic }

// toRaw makes a message ready to be sent. The UUID becomes the id if it has the form of one, and is otherwise kept as a
// header, so that the receiver gets it back unchanged.
func toRaw(topic string, m *message.Message, kind KindFunc) bus.RawMessage {
	raw := bus.RawMessage{Raw: saga.Raw{Name: kind(topic, m), Body: m.Payload},
		Header: make(map[string]string, len(m.Metadata)+1)}
	for name, value := range m.Metadata {
		if name != KindKey {
			raw.Header[name] = value
		}
	}
	if id, err := saga.ParseID(m.UUID); err == nil && !id.IsZero() && id.String() == m.UUID {
		raw.ID = id
	} else {
		raw.Header[uuidHeader] = m.UUID
	}
	return raw
}

func toRaws(topic string, messages []*message.Message, kind KindFunc) ([]bus.RawMessage, error) {
	raws := make([]bus.RawMessage, len(messages))
	for n, m := range messages {
		if m == nil {
			return nil, fmt.Errorf("publish to %s: message %d of %d is nil", topic, n+1, len(messages))
		}
		raws[n] = toRaw(topic, m, kind)
	}
	return raws, nil
}

// fromDelivery returns the message for Watermill. Its payload is d's own memory.
func fromDelivery(d *saga.Delivery) *message.Message {
	uuid := ""
	m := message.NewMessage("", d.Body)
	foreign := false
	for name, value := range d.Info.Headers() {
		if name == uuidHeader {
			uuid, foreign = value, true
			continue
		}
		m.Metadata[name] = value
	}
	if !foreign {
		uuid = d.Info.ID.String()
	}
	m.UUID = uuid
	m.Metadata[KindKey] = d.Info.Kind
	return m
}

type infoKey struct{}

// Info returns Edda's record of a message that a Subscriber of this package has delivered: its id, conversation,
// attempt and sender. ok is false for any other context.
func Info(ctx context.Context) (info saga.Info, ok bool) {
	info, ok = ctx.Value(infoKey{}).(saga.Info)
	return info, ok
}
