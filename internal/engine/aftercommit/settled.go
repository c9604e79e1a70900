package aftercommit

import (
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
)

// Settled returns the fates of the messages of a transaction; err is why it was rolled back, or nil.
func Settled(d *message.Decoder, err error) []event.Settled {
	all := make([]event.Settled, 0, len(d.Retried)+len(d.Messages))
	add := func(m *message.Message, info saga.Info, fate event.Fate, cause error) {
		if err != nil {
			fate, cause = "", nil
		}
		name, key := m.Instance.Name()
		all = append(all, event.Settled{Info: wire.ShownInfo(info), Saga: name, Key: key, Fate: fate, Err: cause})
	}
	for _, a := range d.Retried {
		add(a.Of, a.Info, event.FateRetried, a.Err)
	}
	for _, m := range d.Messages {
		add(m, m.Delivery.Info, FateOf(m), m.Err)
	}
	return all
}

// FateOf returns the fate of m in the terms of events.
func FateOf(m *message.Message) event.Fate {
	if m.Conflicted {
		return event.FateConflicted
	}
	return [...]event.Fate{
		message.FateLeft: event.FateLeft, message.FateDone: event.FateHandled, message.FateAgain: event.FateRetried,
		message.FateDead: event.FateDead, message.FateDropped: event.FateDiscarded,
		message.FateMoved: event.FateMoved,
	}[m.Fate]
}
