package jetstream

import (
	"hash/fnv"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"
)

// ConversationKey is the metadata entry with the conversation of an Edda message.
const ConversationKey = "edda-conversation"

// ByMetadata returns a function that returns a metadata entry of a message, or its UUID if the entry is missing.
func ByMetadata(name string) func(*message.Message) string {
	return func(m *message.Message) string {
		if key := m.Metadata.Get(name); key != "" {
			return key
		}
		return m.UUID
	}
}

// Subjects returns the subjects of a topic with parts: <topic>.0 and so on, or the topic itself for 0 parts.
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

// part returns the same part for a key in every process, for ever. A different number of parts moves keys: let the
// stream run empty before.
func part(key string, parts int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.Itoa(int(h.Sum32() % uint32(parts)))
}
