package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/wake"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ErrNotFound: there is no such message in the queue. It has met its fate, or was never there.
var ErrNotFound = errors.New("there is no such message in the queue")

// Cancelled is what Bus.Cancel did.
type Cancelled uint8

// What Cancel did.
const (
	CancelledWaiting Cancelled = iota + 1 // the message was taken out of the queue and recorded as discarded
	CancelledRunning                      // its handler is told to stop, see Cancel
)

// Cancel ends a message by its id, wherever it waits or runs, and records reason.
//
// A message that waits, also one that is due later, is taken out of the queue and recorded as discarded. One that runs
// in a leased endpoint has the context of its handler cancelled, at once or within a third of the lease: when the
// handler then returns an error the message is discarded, when it returns nil it is handled, for its effects are there.
// One that is part of a batch at this moment is waited for: ErrNotFound says that it was quicker, and that the message
// is not there any more, also not for a retry. The run of a message that a manifest emitted ends with it, as cancelled.
// A partitioned endpoint is looked for in its own queue first and then in those of its partitions.
//
// A queue has no index of ids: the cost is that of reading it, about a second for ten million messages.
// Errors: ErrNotInstalled, ErrNotFound. Safe for concurrent use.
func (b *Bus) Cancel(ctx context.Context, endpoint string, id saga.ID, reason string) (Cancelled, error) {
	did, err := b.cancel(ctx, endpoint, id, reason)
	if err != nil {
		return 0, fmt.Errorf("cancel message %s of endpoint %.80q: %w", id, endpoint, pg.Explain(err))
	}
	return did, nil
}

// mostMoves is how often Cancel looks again for a message that was moved while it looked.
const mostMoves = 10

var errMoves = errors.New("it is there, and was moved each time it was found: try again")

func (b *Bus) cancel(ctx context.Context, endpoint string, id saga.ID, reason string) (did Cancelled, err error) {
	queues, err := b.queuesOf(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	for _, q := range queues {
		if did, err = b.cancelIn(ctx, q, id, deadletter.Storable(reason)); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return did, err
}

// queuesOf is the queue of an endpoint and, behind it, those of its partitions: messages are moved from the first to
// the others.
func (b *Bus) queuesOf(ctx context.Context, endpoint string) ([]*queue.Queue, error) {
	q, err := b.findForTools(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	p := &Partitioned{bus: b, name: endpoint}
	if number, err := p.storedNumber(ctx); err != nil || number == "" {
		return []*queue.Queue{q}, err
	}
	known, err := b.routes.Get(ctx, b.pool)
	if err != nil {
		return nil, err
	}
	return append([]*queue.Queue{q}, p.partitionsFrom(known, 0)...), nil
}

// cancelIn looks in one queue until it has found the message, or seen that it is not there. One that a batch had in
// hand may be a new row by now, which a statement that has waited for the batch does not see.
func (b *Bus) cancelIn(ctx context.Context, q *queue.Queue, id saga.ID, reason string) (did Cancelled, err error) {
	for range mostMoves {
		if did, err = b.cancelOnce(ctx, q, id, reason); !errors.Is(err, ErrNotFound) {
			return did, err
		}
		var there bool
		if err := b.pool.QueryRow(ctx, q.SQL("is_there"), [16]byte(id), q.ID).Scan(&there); err != nil {
			return 0, err
		}
		if !there {
			return 0, ErrNotFound
		}
	}
	return 0, errMoves
}

func (b *Bus) cancelOnce(ctx context.Context, q *queue.Queue, id saga.ID, reason string) (did Cancelled, err error) {
	o := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	err = pgx.BeginTxFunc(ctx, b.pool, o, func(tx pgx.Tx) error {
		var kind string
		var header []byte
		err := tx.QueryRow(ctx, q.SQL("cancel_waiting"), [16]byte(id)).Scan(&kind, &header)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, q.SQL("cancel_parked"), q.ID, [16]byte(id)).Scan(&kind, &header)
		}
		if err == nil {
			did = CancelledWaiting
			if err := b.cancelRun(ctx, tx, header, reason); err != nil {
				return fmt.Errorf("end its run: %w", err)
			}
			return b.letters.AddDiscarded(ctx, tx,
				deadletter.Discarded{Endpoint: q.Endpoint, MessageID: id, Kind: kind, Reason: cancelReason(reason)})
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		did = CancelledRunning
		tag, err := tx.Exec(ctx, q.SQL("cancel_claimed"), [16]byte(id), reason)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err == nil && did == CancelledRunning {
		payload := cancelMark + wake.Payload(q.ID)
		b.hub.Hear(payload)
		if b.wakeup == Notify { // else the next heartbeat finds it
			b.notifier.Send(ctx, payload)
		}
	}
	return did, err
}

func cancelReason(reason string) string { return strings.TrimSuffix("cancelled: "+reason, ": ") }

// cancelledError is ErrCancelled with the reason.
type cancelledError string

func (e cancelledError) Error() string        { return string(e) }
func (e cancelledError) Is(target error) bool { return target == ErrCancelled }

// cancelMark begins the payload of a notification that asks the leased endpoints of a queue to look at their claims.
const cancelMark = "cancel:"
