package watermill

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
)

type inOrderKey struct{}

// InOrder is for a Subscriber that gives out several messages before the first is answered. Messages whose context is
// made of ctx belong together: when one of them is nacked, the Subscriber ends ctx, gives out nothing more under it,
// and begins again with that message, or one before it, under another context.
//
// An Intake that has nacked one waits for that end, and nacks all that it still has under the same context. So nothing
// is brought in before the message that it follows.
func InOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, inOrderKey{}, true)
}

func isInOrder(m *message.Message) bool {
	marked, _ := m.Context().Value(inOrderKey{}).(bool)
	return marked
}

// stillWanted nacks what was withdrawn, and is the rest.
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

// awaitWithdrawal returns when what belongs to the nacked messages of a batch is known by its context. After the end of
// the run no caller waits, and nothing more is brought in.
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
