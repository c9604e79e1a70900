package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Resend writes dead letters back into the queues they came from, in tx, due now in the order given. It serves
// deadletter.Store, which calls Wake after the commit. A letter whose endpoint has no queue is ErrNoRoute and
// deadletter.ErrUndeliverable; nothing has been written then.
func (b *Bus) Resend(ctx context.Context, tx pgx.Tx, letters ...deadletter.Letter) error {
	known, err := b.routes.seenBy(ctx, tx)
	if err != nil {
		return err
	}
	byQueue := map[*queue][]deadletter.Letter{}
	var order []*queue
	for _, l := range letters {
		q := known.endpoints[l.Endpoint]
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
			return fmt.Errorf("resend %d messages to endpoint %s: %w", len(byQueue[q]), q.endpoint, explain(err))
		}
	}
	if len(order) > 0 {
		b.nudgeLater(ctx, tx.Conn(), order, saga.Outgoing{})
	}
	return nil
}

// resends are the statements that write letters to q, none of them with more than mostInsert bytes.
func resends(q *queue, letters []deadletter.Letter) *pgx.Batch {
	pipeline := &pgx.Batch{}
	var (
		ids, kinds      []string
		headers, bodies [][]byte
		bytes           int
	)
	for n, l := range letters {
		ids, kinds = append(ids, l.MessageID.String()), append(kinds, l.Kind)
		headers, bodies = append(headers, nonNil(l.Header)), append(bodies, nonNil(l.Body))
		if bytes += len(l.Header) + len(l.Body) + 64; bytes > mostInsert || n == len(letters)-1 {
			pipeline.Queue(q.sql("insert_in_order"), slices.Clone(ids), slices.Clone(kinds), slices.Clone(headers),
				slices.Clone(bodies))
			ids, kinds, headers, bodies, bytes = ids[:0], kinds[:0], headers[:0], bodies[:0], 0
		}
	}
	return pipeline
}

// Wake tells the workers of endpoints, in all processes, that messages are there for them, and returns when it has: for
// programs that end soon after they have committed, and for messages that others have written. Names that no endpoint
// has are left out. Workers that do not hear of it find the messages at their next poll.
func (b *Bus) Wake(ctx context.Context, endpoints ...string) {
	known, err := b.routes.get(ctx, b.pool)
	if err != nil {
		b.log.Debug("edda: notify", "error", err) // the poll finds the messages
		return
	}
	var to []*queue
	for _, name := range endpoints {
		if q := known.endpoints[name]; q != nil {
			b.hub.wake(q.id, time.Time{})
			to = append(to, q)
		}
	}
	if len(to) > 0 {
		b.tell(ctx, notifyPayloads(to)...)
	}
}
