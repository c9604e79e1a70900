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

// isolation returns the level of InTx's last argument.
func isolation(levels []sql.IsolationLevel) (level sql.IsolationLevel, err error) {
	if len(levels) > 1 {
		return level, fmt.Errorf("begin: %d isolation levels: want one at most", len(levels))
	}
	if len(levels) == 1 {
		level = levels[0]
	}
	if _, known := isolations[level]; !known {
		return level, fmt.Errorf("begin: Postgres has no isolation level %v", level)
	}
	return level, nil
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
// level is the isolation level: LevelReadCommitted, LevelRepeatableRead or LevelSerializable; other levels are an
// error. Without it the level is the default of the database, the role or the session. Sends are equally safe at every
// level. At the two higher levels a send may fail with a serialization failure (40001) if an endpoint subscribes, or a
// concurrent send uses the same id: see RetryRaces.
//
// If the connection breaks during the COMMIT the error is an *OutcomeUnknownError. Messages that were sent with
// your own ids, by saga.WithID, may then be sent again: if the first COMMIT succeeded, they are duplicates and are not
// written. InTx is safe for concurrent use.
func (b *Bus) InTx(ctx context.Context, fn func(tx pgx.Tx) error, level ...sql.IsolationLevel) error {
	at, err := isolation(level)
	if err != nil {
		return err
	}
	tx, err := b.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: isolations[at]})
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

// RetryRaces calls do, which runs a transaction, again if Postgres ended the transaction with a serialization failure
// or a deadlock, at most attempts times in all. do must have no effects outside its transaction. After any other error,
// or a COMMIT with an unknown outcome, do is not called again.
func RetryRaces(ctx context.Context, attempts int, do func() error) error {
	if attempts < 1 {
		return fmt.Errorf("retry a transaction: %d attempts: want 1 or more", attempts)
	}
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
