package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// mostInsert is about how many bytes one statement inserts. Postgres takes no parameter of a gigabyte.
const mostInsert = 16 << 20

// Inserts collects new messages for one queue. The connection must have the array types of package pg.
type Inserts struct {
	due, id, kind, header, body *pg.Array
}

// NewInserts returns an empty collection.
func NewInserts() *Inserts {
	return &Inserts{pg.Timestamps(), pg.UUIDs(), pg.Texts(), pg.Byteas(), pg.Byteas()}
}

// Add adds a message with its encoded header. A zero Due means the time of the insert.
func (i *Inserts) Add(out *saga.Outgoing, header []byte) {
	i.due.Time(out.Info.Due)
	i.id.UUID(out.Info.ID)
	i.kind.Text(out.Info.Kind)
	i.header.Bytes(header)
	i.body.Bytes(out.Body)
}

// Queue queues the statement.
func (i *Inserts) Queue(pipeline *pgx.Batch, q *Queue) {
	pipeline.Queue(q.SQL("insert"), i.due, i.id, i.kind, i.header, i.body)
}

// Returns collects messages that are written back to their queue with all their fields.
type Returns struct {
	delay, id, sent, first, attempt, conflict, kind, header, body, lastError *pg.Array
}

// NewReturns returns an empty collection.
func NewReturns() *Returns {
	return &Returns{
		delay: pg.BigInts(), id: pg.UUIDs(), sent: pg.Timestamps(), first: pg.Timestamps(),
		attempt: pg.Ints(), conflict: pg.Ints(), kind: pg.Texts(), header: pg.Byteas(), body: pg.Byteas(),
		lastError: pg.Texts(),
	}
}

// Add adds a message that is due after delay, with the error for which it goes back.
func (b *Returns) Add(r *Row, delay time.Duration, why error) {
	b.delay.BigInt(pg.Micros(delay))
	b.id.UUID(r.ID)
	b.sent.Time(r.Sent)
	b.first.Time(r.FirstFailed)
	b.attempt.Int(r.Attempt)
	b.conflict.Int(r.Conflict)
	b.kind.Text(r.Kind)
	b.header.Bytes(r.Header)
	b.body.Bytes(r.Body)
	b.lastError.Text(errorText(why))
}

// mostError is how many bytes of an error a queue keeps.
const mostError = 500

// errorText returns the beginning of an error's text, without bytes that Postgres cannot store. The Error method of a
// user's error may panic, which fmt turns into a text.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return pg.Storable(fmt.Sprint(err), mostError)
}

// Queue queues the statement insert_again or wait_in_lanes, unless there are no messages. before and after are its
// parameters before and after those of the messages.
func (b *Returns) Queue(pipeline *pgx.Batch, sql string, before, after []any) {
	if b.id.Len() == 0 {
		return
	}
	of := []any{b.delay, b.id, b.sent, b.first, b.attempt, b.conflict, b.kind, b.header, b.body, b.lastError}
	pipeline.Queue(sql, slices.Concat(before, of, after)...)
}

// InOrder writes messages to one queue, due now in the order of the calls of Add. Its parameters have types that
// every connection supports.
type InOrder struct {
	queue    *Queue
	pipeline *pgx.Batch

	ids, kinds      []string
	headers, bodies [][]byte
	bytes           int
}

// NewInOrder returns a writer that queues its statements in pipeline.
func NewInOrder(pipeline *pgx.Batch, q *Queue) *InOrder {
	return &InOrder{queue: q, pipeline: pipeline}
}

// Add adds one message, and queues a statement when there are mostInsert bytes.
func (w *InOrder) Add(id saga.ID, kind string, header, body []byte) {
	w.ids, w.kinds = append(w.ids, id.String()), append(w.kinds, kind)
	w.headers, w.bodies = append(w.headers, pg.NonNil(header)), append(w.bodies, pg.NonNil(body))
	if w.bytes += len(header) + len(body) + 64; w.bytes > mostInsert {
		w.Flush()
	}
}

// AddOut adds a message that has no header yet.
func (w *InOrder) AddOut(out *saga.Outgoing) {
	w.Add(out.Info.ID, out.Info.Kind, wire.AppendHeader(nil, &out.Info), out.Body)
}

// Flush queues a statement for the messages that were added since the last one.
func (w *InOrder) Flush() {
	if len(w.ids) == 0 {
		return
	}
	w.pipeline.Queue(w.queue.SQL("insert_in_order"),
		slices.Clone(w.ids), slices.Clone(w.kinds), slices.Clone(w.headers), slices.Clone(w.bodies))
	w.ids, w.kinds, w.headers, w.bodies, w.bytes = w.ids[:0], w.kinds[:0], w.headers[:0], w.bodies[:0], 0
}
