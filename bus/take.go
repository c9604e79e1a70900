package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/wire"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// take locks up to o.limit messages that are due. The transaction stays open.
func (b *batch) take(ctx context.Context, o order) error {
	pipeline := &pgx.Batch{}
	b.queueTake(pipeline, o)
	if err := b.sendTake(ctx, pipeline); err != nil {
		b.pump.taken(o, 0, queue.Position{})
		return fmt.Errorf("take: %w", pg.Explain(err))
	}
	if b.seat == nil || b.seat.Taken {
		b.pump.taken(o, b.found, b.foundLast)
	} else {
		b.pump.unseated()
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
	b.large.Queue(pipeline, b.queue, &b.arena)
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
	if b.fence != nil {
		b.fence(pipeline)
	}
	pipeline.Queue(b.queueSeat(pipeline), o.limit, o.after.DueParam(), [16]byte(o.after.ID),
		queue.SmallUpTo(b.options.BatchBytes, o.limit)).Query(b.collect)
	if b.handlers.hasTx {
		pipeline.Queue(b.bus.sql.Get("xact")).QueryRow(func(row pgx.Row) error {
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

func (b *batch) last() queue.Position {
	if len(b.messages) == 0 {
		return queue.Position{}
	}
	return b.messages[len(b.messages)-1].Position()
}

// collect reads the rows of a take. Those from the first on for which there was no memory are left for a later batch.
func (b *batch) collect(rows pgx.Rows) error {
	reader := queue.Reader{Arena: &b.arena}
	for rows.Next() {
		r := pg.CurrentRow(rows)
		b.found, b.foundLast = b.found+1, queue.PositionOf(r)
		b.bytes += int(r.Int(queue.ColumnSize))
		if b.cut = b.cut || len(b.messages) > 0 && b.bytes > b.options.BatchBytes; b.cut {
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

// decode makes every message ready for its handler, or decides its fate: what cannot be understood is dead on its first
// attempt, what this program does not know yet waits for one that does. Users' functions run in it while the
// transaction stands still, so it has the time of a batch: what is not decoded by then is left. Claims have no
// transaction: see decodeClaimed.
func (b *batch) decode() {
	now := time.Now()
	deadline := now.Add(min(b.options.Budget, b.options.StepTimeout))
	for n, m := range b.messages {
		if n > 0 && now.After(deadline) {
			b.messages, b.cut = b.messages[:n], true
			return
		}
		b.read(m)
		now = b.readBy(m, now)
	}
}

// decodeClaimed is decode for a leased endpoint. All of a claim is decoded, and the loop that claims does not end with
// a function of the user's that ends its goroutine.
func (b *batch) decodeClaimed() {
	run.Each(len(b.messages), func(n int) {
		begun := time.Now()
		b.read(b.messages[n])
		b.readBy(b.messages[n], begun)
	}, func(n int) { b.fail(b.messages[n], saga.Permanent(fmt.Errorf("decoding it: %w", errReadExited))) })
}

var errReadExited = errors.New("a function ended its goroutine: runtime.Goexit, or FailNow of package testing")

// mostDecoding is how long the decoding of one message may take, with its key and its Accepts, however long a handler
// may.
const mostDecoding = 5 * time.Second

// readBy makes a failure of a message that took too long to decode, and returns the time. The server may have ended the
// transaction meanwhile; so the failure is also remembered for when the message is taken again, and then it is not
// decoded.
func (b *batch) readBy(m *message, begun time.Time) time.Time {
	now := time.Now()
	most := min(mostDecoding, b.options.StepTimeout)
	if b.handlers.leased {
		most = min(most, b.options.Lease/2)
	}
	if took := now.Sub(begun); took > most {
		if m.fate == left {
			b.fail(m, fmt.Errorf("%w: decoding it took %v", errOverran, took.Round(time.Millisecond)))
		}
		m.unread = true
		b.memory.condemn(m.ID, m.err)
	}
	return now
}

// read reads the header of a message, and what follows from it.
func (b *batch) read(m *message) {
	b.inHand = m
	// a sender has written that, or the clock went back: what waits for a time would wait for ever
	if m.FirstFailed.After(b.now) {
		m.FirstFailed = b.now
	}
	m.delivery = saga.Delivery{
		Info: saga.Info{ID: m.ID, Kind: m.Kind, Attempt: m.Attempt + 1, Sent: m.Sent, Due: m.Due},
		Body: m.Body,
	}
	err := wire.ReadHeader(m.Header, &m.delivery.Info)
	if m.delivery.Info.Fire != nil {
		err = m.readFiring(err)
		b.fired = b.fired || m.fired
	}
	switch {
	case m.convicted != nil:
		m.die("process died", m.convicted)
	case errors.Is(err, wire.ErrNewer):
		b.newerHeader(m, err)
	case err != nil:
		b.fail(m, saga.Permanent(fmt.Errorf("header: %w", err)))
	default:
		b.prepare(m)
	}
}

// prepare finds the consumer and, for a saga, decodes the body and reads the key.
func (b *batch) prepare(m *message) {
	if err := b.memory.verdict(m.ID); err != nil {
		m.judged = true
		b.rehearses = len(b.messages) == 1 && b.memory.rehearses(m.ID)
		b.fail(m, err)
		return
	}
	c := b.handlers.consumers[m.Kind]
	for c != nil && c.accept != nil { // an endpoint with a circle is refused
		body, err := b.convert(c, m.delivery.Body)
		if err != nil {
			b.fail(m, saga.Permanent(err))
			return
		}
		m.delivery.Body, m.delivery.Info.Kind = body, c.as
		c = b.handlers.consumers[c.as]
	}
	if c == nil {
		c = b.handlers.raw
	}
	if c == nil {
		b.unknownKind(m)
		return
	}
	m.consumer = c
	if c.def == nil {
		return
	}
	if m.undecided() {
		return // until its instance says whose it is, see assign
	}
	b.prepareCall(m)
}

// prepareCall decodes a message for its saga, and reads its key.
func (b *batch) prepareCall(m *message) {
	call, err := m.consumer.def.Prepare(m.delivery, b.bus.codec)
	if err != nil {
		m.unread = true
		b.fail(m, err)
		return
	}
	m.call = call
}

// undecided reports whether a message is for one of several sagas, by the instance that it names.
func (m *message) undecided() bool {
	info := &m.delivery.Info
	return m.call == nil && m.consumer.others != nil && info.Intent != saga.Event && !info.Instance.IsZero()
}

// convert runs the function of an Accept, which is a user's and may panic.
func (b *batch) convert(c *consumer, old []byte) (body []byte, err error) {
	defer recovered(&err)
	return c.accept(old, b.bus.codec)
}

const (
	unknownWait = 5 * time.Second
	newerWait   = time.Minute
)

// unknownPause grows with the time that a message has waited, a quarter of it: each look at a message writes its row
// anew, and what nobody has known for minutes may wait for one more.
func (b *batch) unknownPause(m *message) time.Duration {
	if m.FirstFailed.IsZero() {
		return unknownWait
	}
	return max(unknownWait, min(b.now.Sub(m.FirstFailed)/4, newerWait))
}

// unknownKind: in a rolling deploy the new kind arrives before the new program is everywhere. It waits, which costs no
// attempt, and only when nobody has known it for a long time is it a dead letter.
func (b *batch) unknownKind(m *message) {
	err := fmt.Errorf("%s: %w; this endpoint consumes %v", shownKind(m.Kind), ErrUnknownKind, b.kinds())
	if b.waitedLong(m) {
		m.die("unknown kind", err)
		return
	}
	m.putBack(min(b.unknownPause(m), b.options.UnknownFor), err)
}

// waitedLong tells whether m has waited for a program that understands it for as long as it may.
func (b *batch) waitedLong(m *message) bool {
	if m.FirstFailed.IsZero() {
		m.FirstFailed = b.now
	}
	return b.now.Sub(m.FirstFailed) >= b.options.UnknownFor
}

// newerHeader leaves m to a program that reads its header, for as long as an unknown kind may wait: anybody who may
// write to the queue can say that a newer program did.
func (b *batch) newerHeader(m *message, err error) {
	if b.waitedLong(m) {
		m.die(newerProgram, err)
		return
	}
	b.awaitNewerProgram(m, min(newerWait, b.options.UnknownFor), err)
}

const newerProgram = "newer program" // the reason of such a dead letter

// awaitNewerProgram leaves m to a program that knows what wrote it, and says so once in a while.
func (b *batch) awaitNewerProgram(m *message, wait time.Duration, err error) {
	m.putBack(wait, err)
	if b.memory.newerSeen() {
		b.bus.log.Warn("edda: messages wait for a newer program", "endpoint", b.name, "message_id", m.ID.String(),
			"kind", shownKind(m.Kind), "error", err)
	}
}
