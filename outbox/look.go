package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// reader reads the messages of a relay's queue. It leaves no lock and no transaction behind.
type reader struct {
	relay    *Relay
	pool     *pg.Pool
	log      *reporter
	failures failures
	finisher *finisher
	head     head
}

// look reads the head of the queue.
func (r *reader) look(ctx context.Context, most int) (*batch, error) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	pooled, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer pooled.Release()
	conn := pg.Conn{Conn: pooled.Conn()}
	found := &batch{read: time.Now()}
	pipeline := &pgx.Batch{}
	queue.Open(pipeline, &found.now)
	var xmin uint64
	pipeline.Queue(r.relay.border.sql.Get("relay_snapshot")).Query(snapshot(&xmin, &found.xmax))
	if err := r.read(ctx, conn, pipeline, found, part{r.head.begin(found.read), most}); err != nil {
		return nil, err
	}
	first := queue.Position{}
	if len(found.messages) > 0 {
		first = found.messages[0].Position()
	}
	r.head.looked(first, xmin)
	r.decode(found)
	return found, nil
}

// lookBehind reads messages after a position, and decides the ones that need no forward.
func (r *reader) lookBehind(ctx context.Context, from queue.Position, most int) (*batch, error) {
	limited, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	found := &batch{read: time.Now()}
	pipeline := &pgx.Batch{}
	queue.Open(pipeline, &found.now)
	if err := r.read(limited, r.pool, pipeline, found, part{from, most}); err != nil {
		return nil, fmt.Errorf("look: %w", pgerr.Explain(err))
	}
	r.decode(found)
	if found.unread > 0 {
		found.messages = nil
	}
	if err := r.checkRuns(ctx, found); err != nil {
		return nil, err
	}
	r.finisher.recall(found)
	return found, nil
}

// pipeliner is a pool or a connection.
type pipeliner interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// part is the part of a queue that one read covers.
type part struct {
	from queue.Position
	most int // messages
}

// read queues the statement relay_look and sends the pipeline, which is one transaction, so that the planner's
// settings end with it. Then it reads the headers and bodies that relay_look has left out. A message that was removed
// from the queue in the meantime is dropped.
func (r *reader) read(ctx context.Context, conn pipeliner, pipeline *pgx.Batch, found *batch, of part) error {
	var large []*message
	bytes := r.relay.options.BatchBytes
	small := queue.SmallUpTo(bytes, of.most)
	pipeline.Queue(r.relay.queue.SQL("relay_look"), of.most, of.from.DueParam(), [16]byte(of.from.ID), small).
		Query(func(rows pgx.Rows) (err error) {
			large, err = found.collect(rows, of.most, bytes)
			return err
		})
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil || len(large) == 0 {
		return err
	}
	rest := make(queue.Large, len(large))
	for n, m := range large {
		rest[n] = &m.Row
	}
	pipeline = &pgx.Batch{}
	queue.Open(pipeline, nil)
	rest.Queue(pipeline, r.relay.queue, new(queue.Arena))
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	found.messages = slices.DeleteFunc(found.messages, func(m *message) bool { return slices.Contains(rest, &m.Row) })
	return nil
}

const slabSize = 64 // messages that share an allocation

// collect reads the rows of relay_look, and returns the messages whose header and body were left out. Their memory is
// not reused, because forward may keep its deliveries.
func (b *batch) collect(rows pgx.Rows, most, mostBytes int) (large []*message, err error) {
	var (
		bytes int
		slab  []message
	)
	reader := queue.Reader{Arena: new(queue.Arena)}
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
		m.tid = row.TID(queue.ColumnMore)
		if !reader.Read(row, &m.Row) {
			large = append(large, m)
		}
		if b.messages == nil {
			b.messages = make([]*message, 0, min(slabSize, most))
		}
		b.messages = append(b.messages, m)
	}
	return large, rows.Err()
}

// untilNext returns the time until the first message that was not yet due at the time since, if there is one.
func (r *reader) untilNext(ctx context.Context, since time.Time) (wait time.Duration, found bool) {
	ctx, cancel := context.WithTimeout(ctx, nextTimeout)
	defer cancel()
	err := r.pool.QueryRow(ctx, r.relay.queue.SQL("next_due"), since).Scan(&wait)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		// the next poll finds it
		r.relay.options.Logger.Debug("edda: the next due message was not read", "endpoint", r.relay.name,
			"error", err)
	}
	return wait, err == nil
}

const (
	nextTimeout = 5 * time.Second
	newerWait   = time.Minute
	// newerForgotten is the time after which a relay that has waited in vain for a newer program waits again.
	newerForgotten = 24 * time.Hour
	newerProgram   = "newer program" // the reason of such a dead letter
)

// awaitedNewer records since when a relay has found messages of a newer program. It waits once for all of them,
// because a role with the right to write to its queue could forge such messages again and again.
type awaitedNewer struct{ since, last, logged time.Time }

// waits is called for each such message. It reports whether to continue waiting.
func (a *awaitedNewer) waits(most time.Duration) bool {
	now := time.Now()
	if now.Sub(a.last) > newerForgotten {
		a.since = now
	}
	a.last = now
	return now.Sub(a.since) < most
}

// logs reports whether to log that messages wait, at most once per newerWait.
func (a *awaitedNewer) logs() bool {
	if time.Since(a.logged) < newerWait {
		return false
	}
	a.logged = time.Now()
	return true
}

// decode prepares every message for forward, or makes it a dead letter if its header is invalid. A message of a newer
// program, and all messages behind it, wait for such a program for at most UnknownKindTimeout.
func (r *reader) decode(b *batch) {
	for n, m := range b.messages {
		err := m.decode(r.failures.tried(m.ID))
		b.fired = b.fired || m.fired
		switch newer := errors.Is(err, wire.ErrNewer); {
		case newer && r.relay.newer.waits(r.relay.options.UnknownKindTimeout):
			if r.relay.newer.logs() {
				r.relay.options.Logger.Warn("edda: messages wait for a newer program", "endpoint", r.relay.name,
					"message_id", m.ID.String(), "kind", wire.Shown(m.Kind), "error", err)
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
		case wire.HasExpired(&m.delivery.Info, b.now):
			m.discard(wire.Expired)
		}
	}
}

// decode fills the delivery. tried is the number of attempts of this process.
func (m *message) decode(tried int) error {
	info := saga.Info{ID: m.ID, Kind: m.Kind, Attempt: m.Attempt + 1 + tried, Sent: m.Sent, Due: m.Due}
	m.delivery = saga.Delivery{Info: info, Body: m.Body}
	var err error
	m.fired, err = wire.ReadDelivery(m.Header, &m.delivery.Info)
	return err
}

// checkRuns decides the fate of messages of runs that are not current, before they are forwarded. It leaves no locks.
func (r *reader) checkRuns(ctx context.Context, b *batch) error {
	if !b.fired {
		return nil
	}
	var fired []*message
	var attempts runs.Attempts
	for _, m := range b.undecided() {
		if m.fired {
			fired = append(fired, m)
			attempts.Add(m.delivery.Info.Firing)
		}
	}
	if len(fired) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	answers := r.relay.border.Runs.QueueCheck(pipeline, attempts, nil)
	if err := r.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("check runs: %w", pgerr.Explain(err))
	}
	seen := map[saga.ID]bool{}
	for n, m := range fired {
		run := m.delivery.Info.Firing
		switch answer := (*answers)[n]; {
		case answer == runs.Missing:
			m.die(runs.ErrMissing.Error(), runs.ErrMissing)
		// A scheduler never sends two messages of one attempt: the first decides.
		case answer != runs.Current || seen[run.Run]:
			m.err = nil
			m.discard(runs.IsOver)
		default:
			m.run, seen[run.Run] = run, true
		}
	}
	return nil
}
