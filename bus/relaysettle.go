package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5"
)

// settle deletes the messages that have met their fate, and records what there is to record, in one transaction that
// commits only while nobody else has the lease.
func (r *relaying) settle(ctx context.Context, b *relayed) error {
	var settled []*message
	for _, m := range b.messages {
		if m.fate != fateLeft {
			settled = append(settled, m)
		}
	}
	if len(settled) > 0 {
		var err error
		if settled, err = r.write(ctx, settled); err != nil {
			return fmt.Errorf("settle: %w", pg.Explain(lease.Fenced(err)))
		}
		r.forgetDecided(settled)
		r.tellUncopied(ctx, settled)
	}
	r.tell(ctx, b, settled)
	return nil
}

// write returns the messages that were there to be deleted: somebody may have taken one out meanwhile. On an error the
// connection is closed with its transaction, since the pool takes none back that has one open.
func (r *relaying) write(ctx context.Context, settled []*message) (ended []*message, err error) {
	// what is relayed is to be deleted, also after the drain
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), relayTimeout)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	var gone [][16]byte
	tid, due, id := pg.TIDs(), pg.Timestamps(), pg.UUIDs()
	bytes := 0
	for _, m := range settled {
		bytes += len(m.Header) + len(m.Body)
		tid.TID(m.tid)
		due.Time(m.Due)
		id.UUID(m.ID)
	}
	first := &pgx.Batch{}
	first.Queue(queue.Begin)
	first.Queue(queue.Open())
	plain := r.recordsNothing(settled)
	if !plain { // it is two ways to the database, and the guard keeps others from taking over until it ends
		first.Queue(queue.BoundIdle(), betweenStatements(bytes))
	}
	r.bus.leases.QueueGuard(first, r.term)
	first.Queue(r.sql.remove, tid, due, id).Query(func(rows pgx.Rows) error {
		gone = make([][16]byte, 0, len(settled))
		for rows.Next() {
			gone = append(gone, pg.CurrentRow(rows).UUID(0))
		}
		return rows.Err()
	})
	if plain {
		first.Queue("commit")
	}
	if err := conn.SendBatch(ctx, first).Close(); err != nil {
		return nil, err
	}
	if ended = settled; len(gone) < len(settled) {
		ended = slices.DeleteFunc(slices.Clone(settled),
			func(m *message) bool { return !slices.Contains(gone, [16]byte(m.ID)) })
	}
	if plain {
		return ended, nil
	}
	second := &pgx.Batch{}
	r.queueRecords(second, ended)
	second.Queue("commit")
	return ended, conn.SendBatch(ctx, second).Close()
}

// recordsNothing tells of messages that all there is to do is to delete them, which is one way to the database and
// back.
func (r *relaying) recordsNothing(settled []*message) bool {
	return r.options.Keep == 0 && !slices.ContainsFunc(settled, func(m *message) bool {
		return m.fate != fateDone ||
			m.run != nil
	})
}

// queueRecords queues what is kept of messages that ended otherwise than on the other side, and the ends of runs.
func (r *relaying) queueRecords(pipeline *pgx.Batch, ended []*message) {
	var letters []deadletter.Letter
	var discarded []deadletter.Discarded
	var kept []outbox.Kept
	ends := &runEnds{}
	for _, m := range ended {
		if m.run != nil {
			m.reportRun(ends)
		}
		switch {
		case r.copies(m):
			kept = append(kept, outbox.Kept{Endpoint: r.name, ID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body,
				Sent: m.Sent})
		case m.fate == fateDropped:
			discarded = append(discarded, deadletter.Discarded{Endpoint: r.name, MessageID: m.ID, Kind: m.Kind,
				Reason: m.reason})
		case m.fate == fateDead && m.run == nil:
			letters = append(letters, deadletter.Letter{
				Endpoint: r.name, MessageID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body,
				Attempts: m.Attempt, Reason: m.reason, Error: errorText(m.err), Sent: m.Sent,
				FirstFailed: m.FirstFailed,
			})
		}
	}
	r.bus.letters.QueueLetters(pipeline, letters)
	r.bus.letters.QueueDiscarded(pipeline, discarded)
	r.bus.ids.QueueKeep(pipeline, kept)
	ends.held = []int32{} // they were checked in another transaction: one that is not current any more changes nothing
	r.bus.queueRunEnd(pipeline, ends)
}

// checkRuns decides the fate of messages whose runs are not current: before they are forwarded, and with no lock that
// lasts.
func (r *relaying) checkRuns(ctx context.Context, b *relayed) error {
	if !b.fired {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	settle := r.bus.queueRunCheck(pipeline, b.undecided(), nil)
	if err := r.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("check runs: %w", pg.Explain(err))
	}
	settle()
	return nil
}
