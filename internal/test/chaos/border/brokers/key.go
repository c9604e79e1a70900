package brokers

import (
	"hash/fnv"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"
)

// ConversationKey is the metadata that an Edda message has from the first message of its conversation on. All messages
// that a saga instance sends in one conversation have the same.
const ConversationKey = "edda-conversation"

// A Key says what a message has to keep its order with: messages of the same key do, others need not.
type Key func(*message.Message) string

// ByMetadata takes the key from a metadata entry, and the message's own id where there is none.
func ByMetadata(name string) Key {
	return func(m *message.Message) string {
		if key := m.Metadata.Get(name); key != "" {
			return key
		}
		return m.UUID
	}
}

// part is the same for a key in every process, for ever. Another number of parts moves keys: let the stream run empty
// before.
func part(key string, parts int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.Itoa(int(h.Sum32() % uint32(parts)))
}
