package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// taker takes messages. The next batch reuses its memory.
type taker struct {
	engine *Engine
	in     *message.Decoder
	slabs  [][]message.Message // of slabSize each
	used   int                 // messages handed out
	permit *bool               // whether the transaction holds a slot of the endpoint's limit; nil without a limit

	found     int            // rows that the takes have locked, including rows left for lack of memory
	bytes     int            // of the rows that the take has locked
	full      bool           // a row did not fit
	large     queue.Large    // the large rows among them
	foundLast queue.Position // the last row that the take has locked
	touched   bool           // a process had one of its messages in hand before
	outrun    bool           // other workers took its messages while it was entered into the journal
}

const slabSize = 64

func (t *taker) reset() {
	for n := range t.used {
		t.slabs[n/slabSize][n%slabSize] = message.Message{}
	}
	*t = taker{engine: t.engine, in: t.in, slabs: t.slabs}
}

// newMessage returns the next unused message, empty.
func (t *taker) newMessage() *message.Message {
	if t.used == len(t.slabs)*slabSize {
		t.slabs = append(t.slabs, make([]message.Message, slabSize))
	}
	m := &t.slabs[t.used/slabSize][t.used%slabSize]
	t.used++
	return m
}

// take locks up to o.limit messages that are due. The transaction stays open.
func (t *taker) take(ctx context.Context, o order) error {
	ctx, cancel := context.WithTimeout(ctx, contention.AnswerTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	t.queueTake(pipeline, o)
	if err := t.sendTake(ctx, pipeline); err != nil {
		t.engine.pump.taken(o, 0, queue.Position{})
		return fmt.Errorf("take: %w", pgerr.Explain(err))
	}
	if t.permit == nil || *t.permit {
		t.engine.pump.taken(o, t.found, t.foundLast)
	} else {
		t.engine.pump.refused()
	}
	return nil
}

// sendTake sends a pipeline with a take, then reads the large rows.
func (t *taker) sendTake(ctx context.Context, pipeline *pgx.Batch) error {
	if err := t.in.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	return t.takeLarge(ctx)
}

// takeLarge reads the headers and bodies that a take has not read because of their size.
func (t *taker) takeLarge(ctx context.Context) error {
	if len(t.large) == 0 {
		return nil
	}
	pipeline := &pgx.Batch{}
	t.large.Queue(pipeline, t.engine.To.Queue, &t.in.Arena)
	if err := t.in.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	if gone := len(t.large); gone > 0 {
		return fmt.Errorf("%d large messages that were locked are gone", gone)
	}
	return nil
}

// queueTake queues the begin of the transaction, and the take.
func (t *taker) queueTake(pipeline *pgx.Batch, o order) {
	t.bytes, t.large, t.full = 0, nil, false
	pipeline.Queue(queue.Begin)
	queue.Open(pipeline, &t.in.Now)
	if t.engine.Fence != nil {
		t.engine.Fence(pipeline)
	}
	pipeline.Queue(t.queuePermit(pipeline), o.limit, o.after.DueParam(), [16]byte(o.after.ID),
		queue.SmallUpTo(t.engine.Options.BatchBytes, o.limit)).Query(t.collect)
	if t.engine.To.Handlers.HasTx {
		pipeline.Queue(t.engine.sql.Get("xact")).QueryRow(func(row pgx.Row) error {
			return row.Scan(&t.in.Transaction)
		})
	}
	t.in.Begin()
}

// collect reads the rows of a take. It leaves rows that did not fit into the memory for a later batch.
func (t *taker) collect(rows pgx.Rows) error {
	reader := queue.Reader{Arena: &t.in.Arena}
	for rows.Next() {
		r := pg.CurrentRow(rows)
		t.found, t.foundLast = t.found+1, queue.PositionOf(r)
		t.bytes += int(r.Int(queue.ColumnSize))
		if t.full = t.full || len(t.in.Messages) > 0 && t.bytes > t.engine.Options.BatchBytes; t.full {
			t.in.CutAt(len(t.in.Messages))
			continue
		}
		m := t.newMessage()
		if !reader.Read(r, &m.Row) {
			t.large = append(t.large, &m.Row)
		}
		t.in.Take(m, r.TID(queue.ColumnMore), r.Int(queue.ColumnMore+1) != 0)
		t.touched = t.touched || m.Crash.Touched
	}
	return rows.Err()
}

func (t *taker) last() queue.Position {
	if len(t.in.Messages) == 0 {
		return queue.Position{}
	}
	return t.in.Messages[len(t.in.Messages)-1].Position()
}

// A batch of a limited endpoint has a permit: a slot of the limit that it holds by a row lock in its own transaction.
// The permit writes no row, so a crash leaves nothing behind, and an endpoint without a limit does not need one.

// queuePermit queues the statement that acquires the permit in the trip of the take, and returns the take that needs
// it.
func (t *taker) queuePermit(pipeline *pgx.Batch) (take string) {
	if !t.engine.Limit.Set.Load() {
		return t.engine.To.Queue.SQL("take")
	}
	t.permit = t.engine.Limit.Store.QueuePermit(pipeline, t.engine.To.Name)
	return t.engine.To.Queue.SQL("take_permitted")
}

// refused reports whether the take got no permit.
func (r report) refused() bool { return r.permit != nil && !*r.permit }

const seekEvery = 50 * time.Millisecond

// awaitPermit waits a short time after a take without a permit. A change of the limit ends the wait. One worker of a
// process waits and tries again; awaitPermit reports whether this is the one. The others are idle, and are woken when
// that worker has found more than it can take.
func (w *worker) awaitPermit(ctx context.Context) (again bool) {
	if !w.engine.pump.seek() {
		return false
	}
	defer w.engine.pump.sought()
	run.Wait(ctx, run.Jitter(seekEvery), w.engine.Limit.Changed)
	return true
}

// seek makes the caller the worker that waits for a permit, unless a worker already does.
func (p *pump) seek() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.seeking
	p.seeking = true
	return first
}

// sought ends the caller's wait, so that the next worker may wait for a permit.
func (p *pump) sought() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seeking = false
}
