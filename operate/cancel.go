package operate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Cancelled is the result of Messages.Cancel.
type Cancelled uint8

// The results.
const (
	CancelledWaiting Cancelled = iota + 1 // the message was removed from the queue and recorded as discarded
	CancelledRunning                      // its handler is being cancelled, see Cancel
)

// Cancel ends a message by its id, whether it waits or is being handled, and records reason.
//
// A message that waits is removed from the queue and recorded as discarded. If a leased endpoint is handling the
// message, the context of its handler is cancelled, at once or within a third of the lease: if the handler then
// returns an error the message is discarded, and if it returns nil the message is handled. If the message is part of
// a batch, Cancel waits for the batch, and returns ErrNotFound if the batch has ended the message. If a manifest sent
// the message, its run ends with it, as cancelled. In a partitioned endpoint Cancel searches the endpoint's own queue
// first, and then the queues of its partitions.
//
// A queue has no index of ids, so Cancel reads the whole queue: about a second for ten million messages. It returns
// ErrNotInstalled if the endpoint has no queue, and ErrNotFound if no queue of it has the message.
func (m Messages) Cancel(ctx context.Context, endpoint string, id saga.ID, reason string) (Cancelled, error) {
	did, err := m.cancel(ctx, endpoint, id, reason)
	if err != nil {
		return 0, fmt.Errorf("cancel message %s of endpoint %.80q: %w", id, endpoint, pgerr.Explain(err))
	}
	return did, nil
}

// mostMoves is how often Cancel searches again for a message that was moved during the search.
const mostMoves = 10

var errMoves = errors.New("it exists, but moved during each try: try again")

func (m Messages) cancel(ctx context.Context, endpoint string, id saga.ID, reason string) (did Cancelled, err error) {
	queues, err := m.queuesOf(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	for _, q := range queues {
		if did, err = m.cancelIn(ctx, q, id, deadletter.Storable(reason)); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return did, err
}

// queuesOf returns the queue of an endpoint, and then the queues of its partitions, in the order of a message's moves.
func (m Messages) queuesOf(ctx context.Context, endpoint string) ([]*queue.Queue, error) {
	q, err := m.o.find(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	if number, err := m.o.routes.PartitionNumber(ctx, endpoint); err != nil || number == "" {
		return []*queue.Queue{q}, err
	}
	known, err := m.o.routes.Get(ctx, m.o.pool)
	if err != nil {
		return nil, err
	}
	return append([]*queue.Queue{q}, known.Partitions(endpoint, 0)...), nil
}

// cancelIn searches one queue until it has cancelled the message or the message is not in the queue. If a batch had
// the message, it may now be a new row, which is invisible to a statement that has waited for the batch.
func (m Messages) cancelIn(ctx context.Context, q *queue.Queue, id saga.ID, reason string) (did Cancelled, err error) {
	for range mostMoves {
		if did, err = m.cancelOnce(ctx, q, id, reason); !errors.Is(err, ErrNotFound) {
			return did, err
		}
		var there bool
		if err := m.o.pool.QueryRow(ctx, q.SQL("is_there"), [16]byte(id), q.ID).Scan(&there); err != nil {
			return 0, err
		}
		if !there {
			return 0, ErrNotFound
		}
	}
	return 0, errMoves
}

func (m Messages) cancelOnce(
	ctx context.Context, q *queue.Queue, id saga.ID, reason string,
) (did Cancelled, err error) {
	c := audit.Change{Verb: "message.cancel", Target: id.String(), Reason: reason}
	err = m.o.inAudit(ctx, &c, func(tx pgx.Tx) (err error) {
		did, err = m.cancelWithin(ctx, tx, q, id, reason)
		c.Before = map[string]any{"endpoint": q.Endpoint, "running": did == CancelledRunning}
		return err
	})
	if err == nil && did == CancelledRunning {
		m.o.notify(ctx, queue.CancelPrefix+strconv.Itoa(q.ID))
	}
	return did, err
}

func (m Messages) cancelWithin(
	ctx context.Context, tx pgx.Tx, q *queue.Queue, id saga.ID, reason string,
) (Cancelled, error) {
	var (
		kind   string
		header []byte
	)
	err := tx.QueryRow(ctx, q.SQL("cancel_waiting"), [16]byte(id)).Scan(&kind, &header)
	if errors.Is(err, pgx.ErrNoRows) {
		err = tx.QueryRow(ctx, q.SQL("cancel_parked"), q.ID, [16]byte(id)).Scan(&kind, &header)
	}
	switch {
	case err == nil:
		if err := m.endRun(ctx, tx, header, reason); err != nil {
			return 0, fmt.Errorf("end its run: %w", err)
		}
		return CancelledWaiting, m.o.letters.AddDiscarded(ctx, tx, recoverability.Discarded{
			Endpoint: q.Endpoint, MessageID: id, Kind: kind, Reason: queue.CancelReason(reason),
		})
	case !errors.Is(err, pgx.ErrNoRows):
		return 0, err
	}
	tag, err := tx.Exec(ctx, q.SQL("cancel_claimed"), [16]byte(id), reason)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrNotFound
	}
	return CancelledRunning, err
}

// endRun ends the run of a message that was removed from its queue, if a manifest sent the message.
func (m Messages) endRun(ctx context.Context, tx pgx.Tx, header []byte, reason string) error {
	var info saga.Info
	_ = wire.ReadHeader(header, &info) // the readable part of a faulty header suffices
	if info.Firing == nil {
		return nil
	}
	_, err := tx.Exec(ctx, m.o.sql.Get("end_run"), [16]byte(info.Firing.Run), info.Firing.Attempt, reason)
	return err
}
