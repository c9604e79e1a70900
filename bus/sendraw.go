package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RawMessage is a message of SendRaw and SendRawTx: bytes that are encoded already.
type RawMessage struct {
	saga.Raw
	// ID is the id of the message; zero makes a new id. Unlike an id of saga.WithID it is not remembered: the same id
	// may be sent again.
	ID        saga.ID
	Header    map[string]string // with the limits of saga.WithHeader
	MustRoute bool              // as saga.MustRoute
	Expire    time.Duration     // as saga.Expire; 0 is never
}

// Check returns the reason why the message cannot be sent (its kind, headers or size), or nil.
func (m RawMessage) Check() error {
	_, err := m.compose(&saga.Runtime{}, saga.Command)
	return err
}

// SendRaw writes messages of any kinds to the queue of one endpoint, in one transaction: all of them or none. They
// are due in the order given. With "*" for the endpoint it publishes: the queue of every endpoint that is subscribed
// to the kind of a message gets a copy. Errors are those of Send and Publish; an unknown outcome names the first
// message. SendRaw is safe for concurrent use.
func (b *Bus) SendRaw(ctx context.Context, endpoint string, messages ...RawMessage) error {
	out, err := b.sender.composeRaw(ctx, endpoint, messages)
	if err != nil || len(out) == 0 {
		return err
	}
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return sendError(out[0], err)
	}
	defer conn.Release()
	if endpoint == everySubscriber {
		return b.publishRaw(ctx, conn, out)
	}
	for again := false; ; again = true {
		q, err := b.sender.rawQueue(ctx, conn.Conn(), out[0])
		if err == nil {
			err = pg.Conn{Conn: conn.Conn()}.SendBatch(ctx, rawInserts(q, out)).Close()
		}
		switch {
		case err == nil:
			b.notifier.Wake(ctx, q.ID, time.Time{})
			return nil
		case !again && (isNoRoute(err) || pgerr.ClassOf(err) == pgerr.Unprepared):
			b.routes.Forget() // the queue was created after the routes were read
		case isNoRoute(err):
			return err
		default:
			return b.sender.outcome(out[0], err)
		}
	}
}

// SendRawTx is SendRaw in the caller's transaction. While a transaction that has published is open, no endpoint can
// subscribe to new kinds. In a handler use ctx.Send or ctx.Publish with a saga.Raw instead.
func (b *Bus) SendRawTx(ctx context.Context, tx pgx.Tx, endpoint string, messages ...RawMessage) error {
	out, err := b.sender.composeRaw(ctx, endpoint, messages)
	if err != nil || len(out) == 0 {
		return err
	}
	if err := usable(tx); err != nil {
		return sendError(out[0], err)
	}
	pipeline, to, err := b.sender.rawWrites(ctx, tx, out)
	if err != nil || len(to) == 0 {
		return err
	}
	b.sender.queueNotify(pipeline, to)
	if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
		if pgerr.ClassOf(err) == pgerr.Unprepared {
			b.routes.Forget()
		}
		return sendError(out[0], err)
	}
	b.sender.nudgeLater(ctx, tx.Conn(), to, out[0])
	return nil
}

func (b *Bus) publishRaw(ctx context.Context, conn *pgxpool.Conn, out []saga.Outgoing) error {
	to, err := b.sender.publishRaw(ctx, conn, out)
	if pgerr.ClassOf(err) == pgerr.Unprepared { // a queue was dropped, and is forgotten now
		b.routes.Forget()
		to, err = b.sender.publishRaw(ctx, conn, out)
	}
	if err != nil {
		return err
	}
	for _, q := range to {
		b.notifier.Wake(ctx, q.ID, time.Time{})
	}
	return nil
}

func (s *sender) publishRaw(ctx context.Context, conn *pgxpool.Conn, out []saga.Outgoing) ([]*queue.Queue, error) {
	if _, err := s.routes.Get(ctx, conn); err != nil { // while no transaction is open
		return nil, sendError(out[0], err)
	}
	tx, err := conn.BeginTx(ctx, pg.ReadCommitted)
	if err != nil {
		return nil, sendError(out[0], err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // after a COMMIT it does nothing
	pipeline, to, err := s.rawWrites(ctx, tx, out)
	if err != nil || len(to) == 0 {
		return nil, err
	}
	if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, sendError(out[0], err)
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, s.outcome(out[0], err)
	}
	return to, nil
}

// rawWrites returns the statements that write the messages to their queues, and these queues in the order of their
// first messages. For events it takes the lock that makes new subscribers wait.
func (s *sender) rawWrites(ctx context.Context, tx pgx.Tx, out []saga.Outgoing) (*pgx.Batch, []*queue.Queue, error) {
	byKind := map[string][]*queue.Queue{}
	byQueue := map[*queue.Queue][]saga.Outgoing{}
	var to []*queue.Queue
	for _, o := range out {
		queues, known := byKind[o.Info.Kind]
		if !known {
			var err error
			if queues, err = s.destinations(ctx, tx, o); err != nil {
				return nil, nil, sendError(o, err)
			}
			byKind[o.Info.Kind] = queues
		}
		for _, q := range queues {
			if byQueue[q] == nil {
				to = append(to, q)
			}
			byQueue[q] = append(byQueue[q], o)
		}
	}
	pipeline := &pgx.Batch{}
	for _, q := range to {
		insertInOrder(pipeline, q, byQueue[q])
	}
	return pipeline, to, nil
}

func (s *sender) rawQueue(ctx context.Context, conn *pgx.Conn, out saga.Outgoing) (*queue.Queue, error) {
	known, err := s.routes.Get(ctx, conn)
	if err != nil {
		return nil, err
	}
	return known.Command(out.Info.Kind, out.To)
}

// everySubscriber is no name of an endpoint.
const everySubscriber = "*"

// composeRaw checks the messages as Send does, or as Publish does for every subscriber.
func (s *sender) composeRaw(ctx context.Context, endpoint string, messages []RawMessage) ([]saga.Outgoing, error) {
	rt := saga.Runtime{Outgoing: s.outgoing, Caller: ctx}
	intent, to := saga.Command, []saga.SendOption{saga.To(endpoint)}
	if endpoint == everySubscriber {
		intent, to = saga.Event, nil
	}
	out := make([]saga.Outgoing, len(messages))
	for n, m := range messages {
		var err error
		if out[n], err = m.compose(&rt, intent, to...); err != nil {
			return nil, fmt.Errorf("message %d of %d: %w", n+1, len(messages), err)
		}
	}
	return out, nil
}

// compose encodes m with rt, which serves the next message afterwards.
func (m RawMessage) compose(rt *saga.Runtime, intent saga.Intent, options ...saga.SendOption) (saga.Outgoing, error) {
	rt.Now, rt.NewID = time.Now(), func() saga.ID {
		if m.ID.IsZero() {
			return newID()
		}
		return m.ID
	}
	options = slices.Clip(options) // they are shared
	for name, value := range m.Header {
		options = append(options, saga.WithHeader(name, value))
	}
	if m.MustRoute {
		options = append(options, saga.MustRoute())
	}
	if m.Expire != 0 {
		options = append(options, saga.Expire(m.Expire))
	}
	return rt.Compose(intent, m.Raw, options...)
}

// rawInserts returns the statements that write out to q, in order.
func rawInserts(q *queue.Queue, out []saga.Outgoing) *pgx.Batch {
	pipeline := &pgx.Batch{}
	insertInOrder(pipeline, q, out)
	return pipeline
}

func insertInOrder(pipeline *pgx.Batch, q *queue.Queue, out []saga.Outgoing) {
	in := queue.NewInOrder(pipeline, q)
	for n := range out {
		in.AddOut(&out[n])
	}
	in.Flush()
}
