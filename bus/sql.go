package bus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// SQL sends in transactions of database/sql, by any driver, such as pgx/stdlib or lib/pq. It is safe for concurrent
// use.
type SQL struct {
	bus *Bus
	db  *sql.DB
}

// SQL returns the sends in transactions of db, a handle of the bus's database. A db of nil is enough for SendTx and
// PublishTx.
func (b *Bus) SQL(db *sql.DB) SQL { return SQL{b, db} }

// InTx is Bus.InTx for database/sql: it runs fn in a transaction of db and commits it.
func (s SQL) InTx(ctx context.Context, fn func(tx *sql.Tx) error, level ...sql.IsolationLevel) error {
	at, err := isolation(level)
	if err != nil {
		return err
	}
	if s.db == nil {
		return errors.New("begin: the *sql.DB is nil")
	}
	_, _ = s.bus.routes.Get(ctx, s.bus.pool) // while no transaction is open; a send reports the error
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: at})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	sent, err := s.bus.notifier.Collect(tx, func() error { return fn(tx) })
	if err != nil {
		return err
	}
	return s.bus.commitAndWake(ctx, sent, tx.Commit)
}

// SendTx is Bus.SendTx for database/sql. It makes one call of the SQL function send with scalar arguments. Outside of
// InTx the first call of a process reads the subscriptions over a second connection, because tx may belong to a
// different database. If no connection is free for two seconds it fails: call it again, or use InTx.
func (s SQL) SendTx(ctx context.Context, tx *sql.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	return s.bus.sender.callSend(ctx, tx, saga.Command, m, o)
}

// PublishTx is Bus.PublishTx for database/sql.
func (s SQL) PublishTx(ctx context.Context, tx *sql.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	return s.bus.sender.callSend(ctx, tx, saga.Event, m, o)
}

func (s *sender) callSend(ctx context.Context, tx *sql.Tx, intent saga.Intent, m saga.Message,
	o []saga.SendOption) (saga.Sent, error) {
	out, err := s.compose(ctx, intent, m, o)
	if err != nil {
		return saga.Sent{}, err
	}
	if tx == nil {
		return saga.Sent{}, sendError(out, errNilTx)
	}
	known, err := s.routes.Aside(ctx)
	if err != nil {
		return saga.Sent{}, sendError(out, err)
	}
	if out.To == "" && intent == saga.Command {
		out.To = known.Overrides[out.Info.Kind]
	}
	var id any
	if out.GivenID {
		id = out.Info.ID.String()
	}
	var (
		sent saga.Sent
		text string
	)
	row := tx.QueryRowContext(ctx, s.sql.Get("send"), out.Info.Kind, pg.NonNil(out.Body),
		string(wire.AppendHeader(nil, &out.Info)),
		optional(out.To), intent == saga.Event && out.To == "", id, dueText(out), pg.Micros(out.Delay),
		known.SchemaID)
	err = row.Scan(&text, &sent.Copies, &sent.Duplicate)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrOtherDatabase
	}
	if err != nil {
		return saga.Sent{}, sendError(out, sqlSendError(err))
	}
	if sent.ID, err = saga.ParseID(text); err != nil {
		return saga.Sent{}, sendError(out, err)
	}
	if out.MustRoute && sent.Copies == 0 && !sent.Duplicate {
		return saga.Sent{}, message.NoSubscriber(out.Info.Kind, known)
	}
	if !sent.Duplicate {
		s.nudgeLater(ctx, tx, likely(known, out), out)
	}
	return sent, nil
}

// likely returns the queues that the function has probably written to, for a wake-up. They may be wrong.
func likely(known *queue.Routes, out saga.Outgoing) []*queue.Queue {
	if out.Info.Intent == saga.Event && out.To == "" {
		return known.Kinds[out.Info.Kind]
	}
	if q, err := known.Command(out.Info.Kind, out.To); err == nil {
		return []*queue.Queue{q}
	}
	return nil
}

// sqlSendError returns the named error for an error that the SQL function raised.
func sqlSendError(err error) error {
	switch pgerr.Code(err) {
	case "ED002":
		return fmt.Errorf("%w: %w", ErrNoRoute, err)
	case "ED003":
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	case "ED004":
		return fmt.Errorf("%w: %w", ErrIDConflict, err)
	}
	return err
}

func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// dueText writes the time as text, because drivers disagree on how a time.Time becomes a timestamptz.
func dueText(out saga.Outgoing) any {
	if out.Info.Due.IsZero() {
		return nil
	}
	return out.Info.Due.UTC().Format(time.RFC3339Nano)
}
