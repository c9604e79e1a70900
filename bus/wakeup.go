package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/saga"
)

// attach registers w and the other waiters of e, which are woken when the queue, the settings or the limit of e
// change, until detach is called.
func attach(e *Endpoint, w wake.Waker) (detach func()) {
	hub := e.bus.hub
	stops := []func(){
		hub.Attach(e.queue.ID, w),
		hub.Listen(settings.Prefix, wake.OfQueue(e.queue.ID, e.settings.Look)),
		hub.Listen(limit.CallPrefix, func(name string) {
			if name == "" || name == e.name {
				e.permits.changed.Send()
				w.Wake()
			}
		}),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (s *sender) wakeAfterCommit(ctx context.Context, to []*queue.Queue, out saga.Outgoing) {
	at := out.Info.Due
	if out.Delay > 0 {
		at = time.Now().Add(out.Delay)
	}
	for _, q := range to {
		s.notifier.Wake(ctx, q.ID, at)
	}
}

// nudgeLater is for a transaction whose commit this process does not observe. tx is its connection, or the *sql.Tx.
func (s *sender) nudgeLater(ctx context.Context, tx any, to []*queue.Queue, out saga.Outgoing) {
	if out.Delay > 0 || out.Info.Due.After(time.Now()) {
		return // the poll is early enough
	}
	queues := make([]int, len(to))
	for n, q := range to {
		queues[n] = q.ID
	}
	s.notifier.WakeLater(ctx, tx, queues)
}
