package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// SendAllTx is SendTx for many commands, in two round trips for any number of commands. Commands to one endpoint that
// are due at once are due in the order given. Commands with WithID, At or Delay are sent one by one after the others.
// After an error roll the transaction back: some commands may have been written.
func (b *Bus) SendAllTx(ctx context.Context, tx pgx.Tx, all []saga.Posting) ([]saga.Sent, error) {
	if len(all) == 0 {
		return nil, nil
	}
	sent := make([]saga.Sent, len(all))
	var together, apart []saga.Outgoing
	var places []int // in sent, of the commands that are sent one by one
	for n, p := range all {
		out, err := b.sender.compose(ctx, saga.Command, p.Message, p.Options)
		if err != nil {
			return nil, fmt.Errorf("message %d of %d: %w", n+1, len(all), err)
		}
		if out.GivenID || out.Delay > 0 || !out.Info.Due.IsZero() {
			apart, places = append(apart, out), append(places, n)
			continue
		}
		together = append(together, out)
		sent[n] = saga.Sent{ID: out.Info.ID, Copies: 1}
	}
	if err := b.sender.sendTogether(ctx, tx, together); err != nil {
		return nil, err
	}
	for n, out := range apart {
		one, err := b.sender.sendInTx(ctx, tx, out)
		if err != nil {
			return nil, err
		}
		sent[places[n]] = one
	}
	return sent, nil
}

// sendTogether writes commands that are due at once.
func (s *sender) sendTogether(ctx context.Context, tx pgx.Tx, out []saga.Outgoing) error {
	if len(out) == 0 {
		return nil
	}
	if err := usable(tx); err != nil {
		return sendError(out[0], err)
	}
	known, err := s.routes.Newest(ctx, tx, &pgx.Batch{})
	if err != nil {
		return sendError(out[0], err)
	}
	pipeline, to, err := s.inserts(known, out)
	if err != nil {
		return err
	}
	s.queueNotify(pipeline, to)
	if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
		if pgerr.ClassOf(err) == pgerr.Unprepared {
			s.routes.Forget()
		}
		return sendError(out[0], err)
	}
	s.nudgeLater(ctx, tx.Conn(), to, out[0])
	return nil
}

// inserts returns the statements that write out to their queues, in the order of the queues' first messages.
func (s *sender) inserts(known *queue.Routes, out []saga.Outgoing) (*pgx.Batch, []*queue.Queue, error) {
	byQueue := map[*queue.Queue][]saga.Outgoing{}
	var to []*queue.Queue
	for _, o := range out {
		q, err := known.Command(o.Info.Kind, o.To)
		if err != nil {
			return nil, nil, sendError(o, err)
		}
		if !slices.Contains(to, q) {
			to = append(to, q)
		}
		byQueue[q] = append(byQueue[q], o)
	}
	pipeline := &pgx.Batch{}
	for _, q := range to {
		insertInOrder(pipeline, q, byQueue[q])
	}
	return pipeline, to, nil
}
