package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/jackc/pgx/v5"
)

// take locks up to o.limit messages that are due. The transaction stays open.
func (b *batch) take(ctx context.Context, o order) error {
	pipeline := &pgx.Batch{}
	b.queueTake(pipeline, o)
	if err := b.sendTake(ctx, pipeline); err != nil {
		b.ep.pump.taken(o, 0, queue.Position{})
		return fmt.Errorf("take: %w", pg.Explain(err))
	}
	if b.permit == nil || b.permit.Taken {
		b.ep.pump.taken(o, b.found, b.foundLast)
	} else {
		b.ep.pump.refused()
	}
	if len(b.messages) == 0 {
		b.abandon(ctx)
	}
	return nil
}

// sendTake sends a pipeline with a take, and reads what the take has left behind.
func (b *batch) sendTake(ctx context.Context, pipeline *pgx.Batch) error {
	if err := b.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	return b.takeLarge(ctx)
}

// takeLarge reads the headers and bodies that a take has left behind.
func (b *batch) takeLarge(ctx context.Context) error {
	if len(b.large) == 0 {
		return nil
	}
	pipeline := &pgx.Batch{}
	b.large.Queue(pipeline, b.ep.queue, &b.arena)
	if err := b.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	if gone := len(b.large); gone > 0 {
		return fmt.Errorf("%d large messages that were locked are gone", gone)
	}
	return nil
}

// queueTake queues the begin of the transaction, and the take.
func (b *batch) queueTake(pipeline *pgx.Batch, o order) {
	b.bytes, b.large = 0, nil
	pipeline.Queue(queue.Begin)
	pipeline.Queue(queue.Open())
	if b.ep.fence != nil {
		b.ep.fence(pipeline)
	}
	pipeline.Queue(b.queuePermit(pipeline), o.limit, o.after.DueParam(), [16]byte(o.after.ID),
		queue.SmallUpTo(b.ep.options.BatchBytes, o.limit)).Query(b.collect)
	if b.ep.handlers.hasTx {
		pipeline.Queue(b.ep.bus.sql.Get("xact")).QueryRow(func(row pgx.Row) error {
			var xact *string
			err := row.Scan(&xact)
			if xact != nil {
				b.xact = *xact
			}
			return err
		})
	}
	b.begun = time.Now()
}

// collect reads the rows of a take. Those from the first on for which there was no memory are left for a later batch.
func (b *batch) collect(rows pgx.Rows) error {
	reader := queue.Reader{Arena: &b.arena}
	for rows.Next() {
		r := pg.CurrentRow(rows)
		b.found, b.foundLast = b.found+1, queue.PositionOf(r)
		b.bytes += int(r.Int(queue.ColumnSize))
		if b.cut = b.cut || len(b.messages) > 0 && b.bytes > b.ep.options.BatchBytes; b.cut {
			continue
		}
		m := b.newMessage()
		if !reader.Read(r, &m.Row) {
			b.large = append(b.large, &m.Row)
		}
		m.taken.attempt, m.taken.firstFailed = m.Attempt, m.FirstFailed
		b.messages = append(b.messages, m)
		b.now = r.Time(queue.ColumnNow)
		m.tid, m.touched = r.TID(queue.ColumnMore), r.Int(queue.ColumnMore+1) != 0
		b.touched = b.touched || m.touched
	}
	return rows.Err()
}

func (b *batch) last() queue.Position {
	if len(b.messages) == 0 {
		return queue.Position{}
	}
	return b.messages[len(b.messages)-1].Position()
}
