package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/jackc/pgx/v5"
)

// taker takes messages. Its memory serves the next batch.
type taker struct {
	in     *decoder
	slabs  [][]message   // of slabSize each
	used   int           // messages handed out
	permit *limit.Permit // under the endpoint's limit; nil when it has none

	bytes     int            // of the rows that the take has locked
	large     queue.Large    // among them
	foundLast queue.Position // the last row that the take has locked
	touched   bool           // somebody had one of its messages in hand before
	outrun    bool           // others took its messages while it was entered into the journal
}

const slabSize = 64

func (t *taker) reset() {
	for n := range t.used {
		t.slabs[n/slabSize][n%slabSize] = message{}
	}
	*t = taker{in: t.in, slabs: t.slabs}
}

// newMessage hands out the next message, empty.
func (t *taker) newMessage() *message {
	if t.used == len(t.slabs)*slabSize {
		t.slabs = append(t.slabs, make([]message, slabSize))
	}
	m := &t.slabs[t.used/slabSize][t.used%slabSize]
	t.used++
	return m
}

// take locks up to o.limit messages that are due. The transaction stays open.
func (t *taker) take(ctx context.Context, o order) error {
	pipeline := &pgx.Batch{}
	t.queueTake(pipeline, o)
	if err := t.sendTake(ctx, pipeline); err != nil {
		t.in.ep.pump.taken(o, 0, queue.Position{})
		return fmt.Errorf("take: %w", pg.Explain(err))
	}
	if t.permit == nil || t.permit.Taken {
		t.in.ep.pump.taken(o, t.in.found, t.foundLast)
	} else {
		t.in.ep.pump.refused()
	}
	return nil
}

// sendTake sends a pipeline with a take, and reads what the take has left behind.
func (t *taker) sendTake(ctx context.Context, pipeline *pgx.Batch) error {
	if err := t.in.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	return t.takeLarge(ctx)
}

// takeLarge reads the headers and bodies that a take has left behind.
func (t *taker) takeLarge(ctx context.Context) error {
	if len(t.large) == 0 {
		return nil
	}
	pipeline := &pgx.Batch{}
	t.large.Queue(pipeline, t.in.ep.queue, &t.in.arena)
	if err := t.in.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	if gone := len(t.large); gone > 0 {
		return fmt.Errorf("%d large messages that were locked are gone", gone)
	}
	return nil
}

// queueTake queues the begin of the transaction, and the take.
func (t *taker) queueTake(pipeline *pgx.Batch, o order) {
	t.bytes, t.large = 0, nil
	pipeline.Queue(queue.Begin)
	pipeline.Queue(queue.Open())
	if t.in.ep.fence != nil {
		t.in.ep.fence(pipeline)
	}
	pipeline.Queue(t.queuePermit(pipeline), o.limit, o.after.DueParam(), [16]byte(o.after.ID),
		queue.SmallUpTo(t.in.ep.options.BatchBytes, o.limit)).Query(t.collect)
	if t.in.ep.handlers.hasTx {
		pipeline.Queue(t.in.ep.bus.sql.Get("xact")).QueryRow(func(row pgx.Row) error {
			var xact *string
			err := row.Scan(&xact)
			if xact != nil {
				t.in.xact = *xact
			}
			return err
		})
	}
	t.in.begun = time.Now()
}

// collect reads the rows of a take. Those from the first on for which there was no memory are left for a later batch.
func (t *taker) collect(rows pgx.Rows) error {
	reader := queue.Reader{Arena: &t.in.arena}
	for rows.Next() {
		r := pg.CurrentRow(rows)
		t.in.found, t.foundLast = t.in.found+1, queue.PositionOf(r)
		t.bytes += int(r.Int(queue.ColumnSize))
		if t.in.cut = t.in.cut || len(t.in.messages) > 0 && t.bytes > t.in.ep.options.BatchBytes; t.in.cut {
			continue
		}
		m := t.newMessage()
		if !reader.Read(r, &m.Row) {
			t.large = append(t.large, &m.Row)
		}
		m.taken.attempt, m.taken.firstFailed = m.Attempt, m.FirstFailed
		t.in.messages = append(t.in.messages, m)
		t.in.now = r.Time(queue.ColumnNow)
		m.tid, m.crash.touched = r.TID(queue.ColumnMore), r.Int(queue.ColumnMore+1) != 0
		t.touched = t.touched || m.crash.touched
	}
	return rows.Err()
}

func (t *taker) last() queue.Position {
	if len(t.in.messages) == 0 {
		return queue.Position{}
	}
	return t.in.messages[len(t.in.messages)-1].Position()
}
