package jetstream

import (
	"hash/fnv"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"
)

// ConversationKey is the metadata that an Edda message has from the first message of its conversation on.
const ConversationKey = "edda-conversation"

// ByMetadata takes the key of a message from a metadata entry, and from its UUID where there is none.
func ByMetadata(name string) func(*message.Message) string {
	return func(m *message.Message) string {
		if key := m.Metadata.Get(name); key != "" {
			return key
		}
		return m.UUID
	}
}

// Subjects are those of a topic that is cut into parts: <topic>.0 and so on, or the topic itself for 0 parts.
func Subjects(topic string, parts int) []string {
	if parts == 0 {
		return []string{topic}
	}
	subjects := make([]string, parts)
	for n := range subjects {
		subjects[n] = topic + "." + strconv.Itoa(n)
	}
	return subjects
}

// part is the same for a key in every process, for ever. Another number of parts moves keys: let the stream run empty
// before.
func part(key string, parts int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.Itoa(int(h.Sum32() % uint32(parts)))
}
