package watermill

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// BatchPublisher is a Publisher that a relay may give several messages in one Publish. It promises that they are
// written in the order given, and never one without all before it: when Publish returns an error, none of them is
// there, or some of the first.
//
// An error of many messages blames none of them. So a relay then publishes the messages of that batch one by one, with
// the same UUIDs, and what it learns of each is what decides: whether it is a dead letter, and whether the other side
// is away. A UUID that is there already must be no error.
type BatchPublisher interface {
	message.Publisher

	// BatchMax is how many messages Publish takes at most; less than 2 is one.
	BatchMax() int
}

func batchMax(p message.Publisher) int {
	if b, ok := p.(BatchPublisher); ok {
		return max(1, b.BatchMax())
	}
	return 1
}

// publishBatch reports whether all are there. Then none of them has an error.
func (w *border) publishBatch(ctx context.Context, messages []*saga.Delivery, places []int, errs []error) bool {
	batch := make([]*saga.Delivery, len(places))
	for n, place := range places {
		batch[n] = messages[place]
	}
	errs[places[0]] = errExited
	if w.publish(ctx, batch...) != nil {
		errs[places[0]] = bus.ErrBehind
		return false
	}
	for _, place := range places {
		errs[place] = nil
	}
	return true
}
