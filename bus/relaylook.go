package bus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/wire"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

//go:embed relay.sql
var relaySQL string

// relayStatements are those of relay.sql for one queue.
type relayStatements struct{ look, remove string }

func relayStatementsOf(q *queue.Queue) relayStatements {
	return relayStatements{look: q.SQL("relay_look"), remove: q.SQL("relay_delete")}
}

// relayed are the messages of one turn, in their order.
type relayed struct {
	messages []*message
	now      time.Time   // of the database, when they were read
	read     time.Time   // of this process, before that
	xmax     uint64      // the transaction that came next, when they were read
	fired    bool        // one of them belongs to a run
	unread   int         // messages that a newer program wrote
	beyond   int         // of messages: read behind the turn, see relaystuck.go; there may be others before them
	large    queue.Large // among them

	wait time.Duration // before the next turn
	took time.Duration // of forward
}

// clock is what the database's clock shows now, or a little less.
func (b *relayed) clock() time.Time { return b.now.Add(time.Since(b.read)) }

// undecided are the messages that are to be forwarded.
func (b *relayed) undecided() []*message {
	return slices.DeleteFunc(slices.Clone(b.messages), func(m *message) bool { return m.fate != fateLeft })
}

// gone is the last message before which nothing is left; zero when the first is.
func (b *relayed) gone() (last queue.Position) {
	for _, m := range b.messages[:len(b.messages)-b.beyond] {
		if m.fate == fateLeft {
			break
		}
		last = m.Position()
	}
	return last
}

// look reads the head of the queue. No lock and no transaction is left behind.
func (r *relaying) look(ctx context.Context) (*relayed, error) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	batch := &relayed{read: time.Now()}
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Open())
	var xmin uint64
	pipeline.Queue(r.bus.sql.Get("relay_snapshot")).Query(snapshot(&xmin, &batch.xmax))
	from := r.head.begin(batch.read)
	r.queueLook(pipeline, batch, from, r.turnMax())
	// One transaction, so that the planner's settings end with it.
	if err := (pg.Conn{Conn: conn.Conn()}).SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, err
	}
	first := queue.Position{}
	if len(batch.messages) > 0 {
		first = batch.messages[0].Position()
	}
	if err := r.readLarge(ctx, pg.Conn{Conn: conn.Conn()}, batch); err != nil {
		return nil, err
	}
	r.head.looked(first, xmin)
	r.decode(batch)
	return batch, nil
}

// queueLook queues the statement that reads at most so many messages behind a position.
func (r *relaying) queueLook(pipeline *pgx.Batch, batch *relayed, from queue.Position, most int) {
	small := queue.SmallUpTo(r.options.BatchBytes, most)
	pipeline.Queue(r.sql.look, most, from.DueParam(), [16]byte(from.ID), small).Query(
		func(rows pgx.Rows) error {
			return batch.collect(rows, most, r.options.BatchBytes)
		})
}

// readLarge reads the headers and bodies that a look has left behind. A message that was taken out of the queue since
// then is none of the batch's.
func (r *relaying) readLarge(ctx context.Context, conn interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}, batch *relayed) error {
	if len(batch.large) == 0 {
		return nil
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Open())
	batch.large.Queue(pipeline, r.queue, new(queue.Arena))
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	gone := func(m *message) bool { return slices.Contains(batch.large, &m.Row) }
	batch.messages = slices.DeleteFunc(batch.messages, gone)
	return nil
}

// collect reads the rows of a look. Their memory is not used again: forward may keep what it was given.
func (b *relayed) collect(rows pgx.Rows, most, mostBytes int) error {
	var (
		bytes  int
		reader = queue.Reader{Arena: new(queue.Arena)}
		slab   []message
	)
	for rows.Next() {
		row := pg.CurrentRow(rows)
		if bytes += int(row.Int(queue.ColumnSize)); bytes > mostBytes && len(b.messages) > 0 {
			continue
		}
		if len(slab) == 0 {
			slab = make([]message, min(slabSize, most))
		}
		m := &slab[0]
		slab = slab[1:]
		if !reader.Read(row, &m.Row) {
			b.large = append(b.large, &m.Row)
		}
		m.tid = row.TID(queue.ColumnMore)
		if b.messages == nil {
			b.messages, b.now = make([]*message, 0, min(slabSize, most)), row.Time(queue.ColumnNow)
		}
		b.messages = append(b.messages, m)
	}
	return rows.Err()
}

// newerForgotten is how long a relay that has waited for a newer program in vain waits for none.
const newerForgotten = 24 * time.Hour

// awaitedNewer is since when a relay has seen messages that a newer program wrote. It waits once for all of them:
// anybody who may write to its queue can say that a newer program did, again and again.
type awaitedNewer struct{ since, last time.Time }

// waits is called for each such message. It tells whether to go on waiting.
func (a *awaitedNewer) waits(most time.Duration) bool {
	now := time.Now()
	if now.Sub(a.last) > newerForgotten {
		a.since = now
	}
	a.last = now
	return now.Sub(a.since) < most
}

// decode makes every message ready for forward, or a dead letter when its header is none. What a newer program wrote
// waits for one, and so does everything behind it, for as long as UnknownFor.
func (r *relaying) decode(b *relayed) {
	for n, m := range b.messages {
		m.delivery = saga.Delivery{
			Info: saga.Info{ID: m.ID, Kind: m.Kind, Attempt: m.Attempt + 1 + r.triedBefore(m), Sent: m.Sent,
				Due: m.Due},
			Body: m.Body,
		}
		err := wire.ReadHeader(m.Header, &m.delivery.Info)
		if m.delivery.Info.Fire != nil {
			err = m.readFiring(err)
			b.fired = b.fired || m.fired
		}
		switch newer := errors.Is(err, wire.ErrNewer); {
		case newer && r.newer.waits(r.options.UnknownFor):
			if r.endpoint.memory.newerSeen() {
				r.options.Logger.Warn("edda: messages wait for a newer program", "endpoint", r.name, "message_id",
					m.ID.String(), "kind", shownKind(m.Kind), "error", err)
			}
			if n > 0 {
				b.messages = b.messages[:n]
			} else {
				b.unread = len(b.messages)
			}
			return
		case newer:
			m.die(newerProgram, err)
		case err != nil:
			m.Attempt++
			m.die("permanent", saga.Permanent(fmt.Errorf("header: %w", err)))
		}
	}
}
