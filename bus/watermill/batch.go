package watermill

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// BatchPublisher is a Publisher that accepts several messages of a relay in one Publish. It promises to write them in
// the order given, and no message without all earlier messages: when Publish returns an error, it has written no
// message, or some of the first.
//
// An error for several messages does not identify a message. So the relay then publishes the messages of that batch one
// by one, with the same UUIDs, and the results decide whether each is a dead letter, and whether the other side is
// away. A UUID that exists already must not be an error.
type BatchPublisher interface {
	message.Publisher

	// BatchMax returns the most messages that Publish accepts; less than 2 is one.
	BatchMax() int
}

func batchMax(p message.Publisher) int {
	if b, ok := p.(BatchPublisher); ok {
		return max(1, b.BatchMax())
	}
	return 1
}

// publishBatch reports whether all messages are written. Then no message has an error.
func (w *border) publishBatch(ctx context.Context, messages []*saga.Delivery, places []int, errs []error) bool {
	batch := make([]*saga.Delivery, len(places))
	for n, place := range places {
		batch[n] = messages[place]
	}
	errs[places[0]] = errExited
	if w.publish(ctx, batch...) != nil {
		errs[places[0]] = outbox.ErrBehind
		return false
	}
	for _, place := range places {
		errs[place] = nil
	}
	return true
}
