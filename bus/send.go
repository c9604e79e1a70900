package bus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/batch"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Send writes a command to the queue of the one endpoint that handles its kind, and returns after the commit.
//
// Errors: ErrNoRoute and ErrAmbiguous, with the remedy in the text; ErrIDConflict for an id used before with
// different content; a *saga.PermanentError for a message that cannot be sent (its kind, size, headers or time); an
// *OutcomeUnknownError if the connection broke during the commit. After any other error nothing was sent. Send is
// safe for concurrent use.
func (b *Bus) Send(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	out, err := b.sender.compose(ctx, saga.Command, m, o)
	if err != nil {
		return saga.Sent{}, err
	}
	return b.sender.sendAlone(ctx, out)
}

// Publish writes one copy to the queue of every endpoint that handles the kind; Sent.Copies is their number. If no
// endpoint handles the kind, Publish returns nil and writes nothing, except with saga.MustRoute. Other errors are
// those of Send.
func (b *Bus) Publish(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	out, err := b.sender.compose(ctx, saga.Event, m, o)
	if err != nil {
		return saga.Sent{}, err
	}
	return b.sender.sendAlone(ctx, out)
}

// SendTx is Send in the caller's transaction: nothing is sent unless tx commits. tx must belong to the bus's
// database; otherwise the error is ErrOtherDatabase. Calls with different transactions may be concurrent.
func (b *Bus) SendTx(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	out, err := b.sender.compose(ctx, saga.Command, m, o)
	if err != nil {
		return saga.Sent{}, err
	}
	return b.sender.sendInTx(ctx, tx, out)
}

// PublishTx is Publish in the caller's transaction. While tx is open no endpoint can subscribe to new kinds.
func (b *Bus) PublishTx(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	out, err := b.sender.compose(ctx, saga.Event, m, o)
	if err != nil {
		return saga.Sent{}, err
	}
	return b.sender.sendInTx(ctx, tx, out)
}

// sender is shared by all sends from outside of handlers. It is safe for concurrent use.
type sender struct {
	pool       *pg.Pool
	sql        pg.Statements
	codec      saga.Codec
	routes     *queue.Router
	sent       *dedup.Store
	notifier   *wake.Notifier
	notifyInTx bool
	outgoing   func(context.Context, *saga.Info) // Options.Outgoing
}

// compose encodes and checks a message from outside of handlers. The database's clock adds the delay.
func (s *sender) compose(ctx context.Context, intent saga.Intent, m saga.Message, o []saga.SendOption) (saga.Outgoing,
	error) {
	rt := saga.Runtime{Now: time.Now(), NewID: newID, Codec: s.codec, Outgoing: s.outgoing, Caller: ctx}
	return rt.Compose(intent, m, o...)
}

// sendAlone sends in a transaction of its own: by a single statement if nothing has to be looked up.
func (s *sender) sendAlone(ctx context.Context, out saga.Outgoing) (saga.Sent, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return saga.Sent{}, fmt.Errorf("send %s: %w", out.Info.Kind, err)
	}
	defer conn.Release()
	if out.Info.Intent == saga.Command && !out.GivenID {
		return s.sendOne(ctx, conn.Conn(), out)
	}
	sent, to, err := s.sendCommitted(ctx, conn, out)
	if err != nil && pgerr.ClassOf(err) == pgerr.Unprepared { // a queue was dropped, and is forgotten now
		sent, to, err = s.sendCommitted(ctx, conn, out)
	}
	if err != nil {
		return saga.Sent{}, err
	}
	s.wakeAfterCommit(ctx, to, out)
	return sent, nil
}

// sendCommitted sends in a transaction of its own. The outcome is unknown only if the connection breaks during the
// COMMIT.
func (s *sender) sendCommitted(
	ctx context.Context, conn *pgxpool.Conn, out saga.Outgoing,
) (sent saga.Sent, to []*queue.Queue, err error) {
	if _, err := s.routes.Get(ctx, conn); err != nil { // while no transaction is open
		return saga.Sent{}, nil, sendError(out, err)
	}
	tx, err := conn.BeginTx(ctx, pg.ReadCommitted)
	if err == nil {
		defer func() { _ = tx.Rollback(ctx) }() // after a COMMIT it does nothing
		sent, to, err = s.write(ctx, tx, out)
	}
	if err != nil {
		return saga.Sent{}, nil, sendError(out, err)
	}
	if err := tx.Commit(ctx); err != nil {
		if !pgerr.Refused(err) { // pgx reports a lost reply and a connection that was closed before in the same way
			return saga.Sent{}, nil, &OutcomeUnknownError{ID: out.Info.ID, Err: err}
		}
		return saga.Sent{}, nil, sendError(out, err)
	}
	return sent, to, nil
}

// sendOne writes a command with one statement that commits itself. If a queue was dropped and made again since the
// routes were read, sendOne looks it up once more.
func (s *sender) sendOne(ctx context.Context, conn *pgx.Conn, out saga.Outgoing) (saga.Sent, error) {
	for again := false; ; again = true {
		known, err := s.routes.Get(ctx, conn)
		if err != nil {
			return saga.Sent{}, err
		}
		q, err := known.Command(out.Info.Kind, out.To)
		if err != nil && !again && isNoRoute(err) {
			s.routes.Forget()
			continue
		}
		if err != nil {
			return saga.Sent{}, err
		}
		_, err = conn.Exec(ctx, q.SQL("insert_one"), oneArgs(&out)...)
		if err != nil && !again && pgerr.ClassOf(err) == pgerr.Unprepared {
			s.routes.Forget()
			continue
		}
		if err != nil {
			return saga.Sent{}, s.outcome(out, err)
		}
		s.wakeAfterCommit(ctx, []*queue.Queue{q}, out)
		return saga.Sent{ID: out.Info.ID, Copies: 1}, nil
	}
}

// oneArgs returns the parameters of insert_one, a statement that every connection has prepared.
func oneArgs(out *saga.Outgoing) []any {
	var due *time.Time
	if !out.Info.Due.IsZero() {
		due = &out.Info.Due
	}
	id, header := [16]byte(out.Info.ID), wire.AppendHeader(nil, &out.Info)
	return []any{due, id, out.Info.Kind, header, pg.NonNil(out.Body), pg.Micros(out.Delay)}
}

// outcome distinguishes a refusal by the server, after which nothing was sent, from a broken connection.
func (s *sender) outcome(out saga.Outgoing, err error) error {
	if !pgerr.Refused(err) && !pgconn.SafeToRetry(err) {
		return &OutcomeUnknownError{ID: out.Info.ID, Err: err}
	}
	return sendError(out, err)
}

func sendError(out saga.Outgoing, err error) error {
	if errors.Is(err, ErrNoRoute) || errors.Is(err, ErrAmbiguous) {
		return err // its text already names the message
	}
	switch {
	case errors.Is(err, pgx.ErrTxClosed), errors.Is(err, sql.ErrTxDone):
		err = fmt.Errorf("%w (the transaction has ended: send before its commit or rollback)", err)
	case pgerr.ClassOf(err) == pgerr.AbortedAlready:
		err = fmt.Errorf("%w (the transaction failed before this send: look at its first error)", err)
	}
	return fmt.Errorf("send %s: %w", out.Info.Kind, pgerr.Explain(err))
}

var errNilTx = errors.New("the transaction is nil")

// usable returns the reason why nothing can be sent in tx, or nil.
func usable(tx pgx.Tx) error {
	switch t := tx.(type) {
	case nil:
		return errNilTx
	case *pgxpool.Tx:
		if t == nil {
			return errNilTx
		}
	}
	if batch.IsHandlers(tx) {
		return fmt.Errorf("a handler sends through its own context: use ctx.Send instead of %T", tx)
	}
	return nil
}

func (s *sender) sendInTx(ctx context.Context, tx pgx.Tx, out saga.Outgoing) (saga.Sent, error) {
	if err := usable(tx); err != nil {
		return saga.Sent{}, sendError(out, err)
	}
	sent, to, err := s.write(ctx, tx, out)
	if err != nil {
		return saga.Sent{}, sendError(out, err)
	}
	if s.notifyInTx {
		batch := &pgx.Batch{}
		if s.queueNotify(batch, to); batch.Len() > 0 {
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return saga.Sent{}, sendError(out, err)
			}
		}
	}
	s.nudgeLater(ctx, tx.Conn(), to, out)
	return sent, nil
}

// queueNotify queues the wake-ups of a send, if they belong in the caller's transaction.
func (s *sender) queueNotify(batch *pgx.Batch, to []*queue.Queue) {
	if !s.notifyInTx {
		return
	}
	for _, q := range to {
		s.notifier.Queue(batch, wake.Payload(q.ID))
	}
}

// write finds the queues for out and inserts it in tx, which the caller ends.
func (s *sender) write(ctx context.Context, tx pgx.Tx, out saga.Outgoing) (saga.Sent, []*queue.Queue, error) {
	to, err := s.destinations(ctx, tx, out)
	if err != nil {
		return saga.Sent{}, nil, err
	}
	sent := saga.Sent{ID: out.Info.ID, Copies: len(to)}
	if out.GivenID {
		claim := s.sent.NewClaim([]dedup.Given{{ID: out.Info.ID, Sum: dedup.Sum(out.Info.Kind, out.To, out.Body)}})
		batch := &pgx.Batch{}
		claim.Queue(batch)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return saga.Sent{}, nil, err
		}
		switch claim.Outcome(0) {
		case dedup.Duplicate:
			return saga.Sent{ID: out.Info.ID, Duplicate: true}, nil, nil
		case dedup.Conflict:
			return saga.Sent{}, nil, fmt.Errorf("message %s: %w", out.Info.ID, ErrIDConflict)
		}
	}
	batch := &pgx.Batch{}
	args := oneArgs(&out)
	for _, q := range to {
		batch.Queue(q.SQL("insert_one"), args...)
	}
	if batch.Len() == 0 {
		return sent, nil, nil
	}
	err = tx.SendBatch(ctx, batch).Close()
	if pgerr.ClassOf(err) == pgerr.Unprepared {
		s.routes.Forget()
	}
	return sent, to, err
}

// destinations finds the queues. For an event it first takes a lock that makes new subscribers wait.
func (s *sender) destinations(ctx context.Context, tx queue.Pipeliner, out saga.Outgoing) ([]*queue.Queue, error) {
	event := out.Info.Intent == saga.Event && out.To == ""
	batch := &pgx.Batch{}
	if event {
		s.routes.QueueWait(batch, out.Info.Kind)
	}
	known, err := s.routes.Newest(ctx, tx, batch)
	if err != nil {
		return nil, err
	}
	if event {
		queues := known.Kinds[out.Info.Kind]
		if out.MustRoute && len(queues) == 0 {
			err = message.NoSubscriber(out.Info.Kind, known)
		}
		return queues, err
	}
	q, err := known.Command(out.Info.Kind, out.To)
	if err != nil {
		return nil, err
	}
	return []*queue.Queue{q}, nil
}

// fits checks the schema before this process reads its routes, so also for a program that only sends. If the role may
// not read the table of migrations, fits checks nothing.
func fits(schema pg.Schema) func(context.Context, pg.Queryer) error {
	return func(ctx context.Context, q pg.Queryer) error {
		of, ok := q.(version.Querier)
		if !ok {
			return nil
		}
		if err := version.Check(ctx, of, schema); err != nil && pgerr.ClassOf(err) != pgerr.Denied {
			return pgerr.Explain(err)
		}
		return nil
	}
}
