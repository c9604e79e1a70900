package watermill

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
)

type inOrderKey struct{}

// InOrder is for a Subscriber that delivers several messages before the first is answered. Messages whose context is
// derived from the result belong together: when one of them is nacked, the Subscriber ends ctx, delivers no more
// messages under it, and begins again with that message, or an earlier one, under a different context.
//
// An Intake that has nacked one of them waits for that end, and nacks all messages that it still has under the same
// context. So no message is ingested before the message that it follows.
func InOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, inOrderKey{}, true)
}

func isInOrder(m *message.Message) bool {
	marked, _ := m.Context().Value(inOrderKey{}).(bool)
	return marked
}

// stillWanted nacks the withdrawn messages of a batch, and returns the others.
func (r *intakeRun) stillWanted(batch []*message.Message) []*message.Message {
	wanted := batch[:0]
	for _, m := range batch {
		if isInOrder(m) && (r.over || m.Context().Err() != nil) {
			m.Nack()
			continue
		}
		wanted = append(wanted, m)
	}
	return wanted
}

// awaitWithdrawal returns when the contexts of the nacked messages of a batch have ended, so that the messages that
// belong to them are known. After the end of the run no caller waits, and no more messages are ingested.
func (r *intakeRun) awaitWithdrawal(ctx context.Context, batch []*message.Message) {
	for _, m := range batch {
		if !isInOrder(m) || !isNacked(m) {
			continue
		}
		select {
		case <-m.Context().Done():
		case <-ctx.Done():
			r.over = true
			return
		}
	}
}

func isNacked(m *message.Message) bool {
	select {
	case <-m.Nacked():
		return true
	default:
		return false
	}
}
