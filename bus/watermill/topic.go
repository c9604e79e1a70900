package watermill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/edda-go/edda/saga"
)

// checkTopic refuses a topic that cannot name a queue. It translates nothing: two topics must never become one queue,
// and a person who reads the tables finds the published name.
func checkTopic(topic string) error {
	if err := saga.CheckName(topic); err != nil {
		return fmt.Errorf("topic %.80q cannot name an Edda queue: %w; with Watermill's CQRS component choose the "+
			"name in GeneratePublishTopic and GenerateSubscribeTopic", topic, err)
	}
	return nil
}

const mostQueueName = 63

// groupQueue returns the name of the queue of a consumer group: topic, dot, group if that is a valid name; otherwise as
// much of the topic as fits, with a digest of both.
func groupQueue(topic, group string) string {
	queue := topic + "." + group
	if saga.CheckName(queue) == nil {
		return queue
	}
	sum := sha256.Sum256([]byte(topic + "\n" + group))
	digest := "." + hex.EncodeToString(sum[:8])
	return strings.TrimRight(topic[:min(len(topic), mostQueueName-len(digest))], ".") + digest
}
