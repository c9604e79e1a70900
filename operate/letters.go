package operate

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5"
)

// DeadLetters returns the store of messages that failed for good, to list, show, retry and discard them. Its methods
// that send messages need a deadletter.Resender, which the Operator implements:
//
//	err := o.DeadLetters().Retry(ctx, pool, o, number)
func (o *Operator) DeadLetters() *deadletter.Store { return o.letters }

// Outbox returns the store of the copies of relayed messages, with the retention of these copies and of the ids of the
// inbox. Replay sends copies again.
func (o *Operator) Outbox() *outbox.Store { return o.outbox }

// History returns the reader that finds messages, explains their state, and shows the timelines of instances.
func (o *Operator) History() *whereabouts.Reader { return o.history }

// Resend writes dead letters back into the queues they came from, in tx, due now in the order given. deadletter.Store
// calls it, and calls Wake after the commit. If a letter's endpoint has no queue, Resend returns
// deadletter.ErrUndeliverable and has written nothing.
func (o *Operator) Resend(ctx context.Context, tx pgx.Tx, letters ...deadletter.Letter) error {
	known, err := o.routes.SeenBy(ctx, tx)
	if err != nil {
		return err
	}
	byQueue := map[*queue.Queue][]deadletter.Letter{}
	var order []*queue.Queue
	for _, l := range letters {
		q := known.Endpoints[l.Endpoint]
		if q == nil {
			return fmt.Errorf("resend message %s to endpoint %q: %w: %w", l.MessageID, l.Endpoint, queue.ErrNoRoute,
				deadletter.ErrUndeliverable)
		}
		if byQueue[q] == nil {
			order = append(order, q)
		}
		byQueue[q] = append(byQueue[q], l)
	}
	for _, q := range order {
		if err := tx.SendBatch(ctx, resends(q, byQueue[q])).Close(); err != nil {
			return fmt.Errorf("resend %d messages to endpoint %s: %w", len(byQueue[q]), q.Endpoint, pgerr.Explain(err))
		}
	}
	return nil
}

// resends returns the statements that write letters to q.
func resends(q *queue.Queue, letters []deadletter.Letter) *pgx.Batch {
	pipeline := &pgx.Batch{}
	in := queue.NewInOrder(pipeline, q)
	for _, l := range letters {
		in.Add(l.MessageID, l.Kind, l.Header, l.Body)
	}
	in.Flush()
	return pipeline
}
