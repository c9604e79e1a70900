package bus

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Resend writes dead letters back into the queues they came from, in tx, due now in the order given. It serves
// deadletter.Store, which calls Wake after the commit. A letter whose endpoint has no queue is ErrNoRoute and
// deadletter.ErrUndeliverable; nothing has been written then.
func (b *Bus) Resend(ctx context.Context, tx pgx.Tx, letters ...deadletter.Letter) error {
	known, err := b.routes.SeenBy(ctx, tx)
	if err != nil {
		return err
	}
	byQueue := map[*queue.Queue][]deadletter.Letter{}
	var order []*queue.Queue
	for _, l := range letters {
		q := known.Endpoints[l.Endpoint]
		if q == nil {
			return fmt.Errorf("resend message %s to endpoint %q: %w: %w", l.MessageID, l.Endpoint, ErrNoRoute,
				deadletter.ErrUndeliverable)
		}
		if byQueue[q] == nil {
			order = append(order, q)
		}
		byQueue[q] = append(byQueue[q], l)
	}
	for _, q := range order {
		if err := tx.SendBatch(ctx, resends(q, byQueue[q])).Close(); err != nil {
			return fmt.Errorf("resend %d messages to endpoint %s: %w", len(byQueue[q]), q.Endpoint, pg.Explain(err))
		}
	}
	if len(order) > 0 {
		b.nudgeLater(ctx, tx.Conn(), order, saga.Outgoing{})
	}
	return nil
}

// resends are the statements that write letters to q.
func resends(q *queue.Queue, letters []deadletter.Letter) *pgx.Batch {
	pipeline := &pgx.Batch{}
	in := queue.NewInOrder(pipeline, q)
	for _, l := range letters {
		in.Add(l.MessageID, l.Kind, l.Header, l.Body)
	}
	in.Flush()
	return pipeline
}

// Wake tells the workers of endpoints, in all processes, that messages are there for them, and returns when it has: for
// programs that end soon after they have committed, and for messages that others have written. Names that no endpoint
// has are left out. Workers that do not hear of it find the messages at their next poll.
func (b *Bus) Wake(ctx context.Context, endpoints ...string) {
	known, err := b.routes.Get(ctx, b.pool)
	if err != nil {
		b.log.Debug("edda: notify", "error", err) // the poll finds the messages
		return
	}
	var to []int
	for _, name := range endpoints {
		if q := known.Endpoints[name]; q != nil {
			to = append(to, q.ID)
		}
	}
	if len(to) > 0 {
		b.notifier.WakeAll(ctx, to)
	}
}
