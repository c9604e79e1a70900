package bus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

// TxOption changes the transactions of InTx and InSQL.
type TxOption interface{ apply(o *txOptions) }

type txOptions struct {
	isolation sql.IsolationLevel
	attempts  int
}

type txOptionFunc func(o *txOptions)

func (f txOptionFunc) apply(o *txOptions) { f(o) }

// Isolation runs the transaction at an isolation level of Postgres: LevelReadCommitted, LevelRepeatableRead or
// LevelSerializable; other levels are an error. Without it the level is the default of the database, the role or the
// session. Sends are equally safe at every level. At the two higher levels a send may fail with a serialization
// failure (40001) if an endpoint subscribes, or a concurrent send uses the same id: see Attempts.
func Isolation(level sql.IsolationLevel) TxOption {
	return txOptionFunc(func(o *txOptions) { o.isolation = level })
}

// Attempts calls fn again in a new transaction if Postgres ended the transaction with a serialization failure or a
// deadlock, at most n times in all; n < 1 is an error. fn must then have no effects outside its transaction. After
// any other error of fn, or a COMMIT with an unknown outcome, fn is not called again.
func Attempts(n int) TxOption {
	return txOptionFunc(func(o *txOptions) { o.attempts = n })
}

func newTxOptions(options []TxOption) (o txOptions, err error) {
	o.attempts = 1
	for _, option := range options {
		option.apply(&o)
	}
	if _, known := isolations[o.isolation]; !known {
		return o, fmt.Errorf("begin: Postgres has no isolation level %v", o.isolation)
	}
	if o.attempts < 1 {
		return o, fmt.Errorf("begin: %d attempts: want 1 or more", o.attempts)
	}
	return o, nil
}

var isolations = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelDefault:        "",
	sql.LevelReadCommitted:  pgx.ReadCommitted,
	sql.LevelRepeatableRead: pgx.RepeatableRead,
	sql.LevelSerializable:   pgx.Serializable,
}

// InTx runs fn in a transaction of the bus's pool and commits it. Right after the commit it wakes the workers of the
// queues that fn sent to through this bus, so that they need not wait for their next poll. After an error or a panic of
// fn everything is rolled back, including the messages, and the error is returned as it is.
//
// If the connection breaks during the COMMIT the error is an *OutcomeUnknownError. Messages that were sent with your
// own ids, by saga.WithID, may then be sent again: if the first COMMIT succeeded, they are duplicates and are not
// written. InTx is safe for concurrent use.
func (b *Bus) InTx(ctx context.Context, fn func(tx pgx.Tx) error, options ...TxOption) error {
	o, err := newTxOptions(options)
	if err != nil {
		return err
	}
	return repeat(ctx, o.attempts, func() error {
		tx, err := b.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: isolations[o.isolation]})
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		defer func() { _ = tx.Rollback(ctx) }() // after a COMMIT it does nothing
		conn := tx.Conn()
		sent, err := b.notifier.Collect(conn, func() error { return fn(tx) })
		if err != nil {
			return err
		}
		return b.commitAndWake(ctx, sent, func() error { return tx.Commit(ctx) })
	})
}

// Transact is InTx at one isolation level. It makes a Bus a scheduler.Transactor. Its signature has no types of this
// package, because package scheduler does not import it.
func (b *Bus) Transact(ctx context.Context, level sql.IsolationLevel, fn func(tx pgx.Tx) error) error {
	return b.InTx(ctx, fn, Isolation(level))
}

// InSQL is InTx for database/sql: it runs fn in a transaction of db and commits it. db is a handle of the bus's
// database by any driver, such as pgx/stdlib or lib/pq.
func (b *Bus) InSQL(ctx context.Context, db *sql.DB, fn func(tx *sql.Tx) error, options ...TxOption) error {
	o, err := newTxOptions(options)
	if err != nil {
		return err
	}
	_, _ = b.routes.Get(ctx, b.pool) // while no transaction is open; a send reports the error
	return repeat(ctx, o.attempts, func() error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: o.isolation})
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		defer func() { _ = tx.Rollback() }()
		sent, err := b.notifier.Collect(tx, func() error { return fn(tx) })
		if err != nil {
			return err
		}
		return b.commitAndWake(ctx, sent, tx.Commit)
	})
}

func (b *Bus) commitAndWake(ctx context.Context, sent []int, commit func() error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("commit: %w", context.Cause(ctx)) // COMMIT was not sent, so the outcome is known
	}
	err := commit()
	switch {
	case err == nil:
		for _, queue := range sent {
			b.notifier.Wake(ctx, queue, time.Time{})
		}
		return nil
	case pgerr.Refused(err), errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, pgx.ErrTxClosed),
		errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("commit: %w", err)
	}
	return &OutcomeUnknownError{Err: err}
}

// repeat calls do until it succeeds or fails with an error that is not a lost race, at most attempts times.
func repeat(ctx context.Context, attempts int, do func() error) error {
	distance := backoff.NewExponentialBackOff(backoff.WithInitialInterval(2*time.Millisecond),
		backoff.WithMaxInterval(100*time.Millisecond))
	for n := 1; ; n++ {
		err := do()
		if err == nil || n == attempts || pgerr.ClassOf(err) != pgerr.Race {
			return err
		}
		if run.Sleep(ctx, distance.NextBackOff()) != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
