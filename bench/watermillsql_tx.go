package main

import (
	"context"
	"database/sql"
	"errors"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watermillDB begins transactions that save round trips. What only writes waits for the next query or for the COMMIT
// and goes with it in a pipeline: begin and take, load, then save, publish, delete and COMMIT.
type watermillDB struct{ *pgxpool.Pool }

func (db watermillDB) BeginTx(ctx context.Context, _ *sql.TxOptions) (wsql.Tx, error) {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx := &watermillTx{ctx: ctx, conn: conn, waiting: &pgx.Batch{}}
	tx.waiting.Queue("begin isolation level read committed")
	return tx, nil
}

func (db watermillDB) ExecContext(ctx context.Context, query string, args ...any) (wsql.Result, error) {
	tag, err := db.Exec(ctx, query, args...)
	return wsql.PgxResult{CommandTag: tag}, err
}

func (db watermillDB) QueryContext(ctx context.Context, query string, args ...any) (wsql.Rows, error) {
	rows, err := db.Query(ctx, query, args...)
	return wsql.PgxRows{Rows: rows}, err
}

// watermillTx is one transaction, used by the subscriber and by its handler in turn.
type watermillTx struct {
	ctx     context.Context
	conn    *pgxpool.Conn
	waiting *pgx.Batch
}

// ExecContext puts the statement into the pipeline. Its error comes out of what is sent next, at the latest of Commit:
// the message is then not deleted and comes again.
func (tx *watermillTx) ExecContext(_ context.Context, query string, args ...any) (wsql.Result, error) {
	tx.waiting.Queue(query, args...)
	return wsql.PgxResult{}, nil
}

// QueryContext sends what waits and the query in one trip.
func (tx *watermillTx) QueryContext(ctx context.Context, query string, args ...any) (wsql.Rows, error) {
	before := tx.waiting.Len()
	tx.waiting.Queue(query, args...)
	answers := tx.conn.SendBatch(ctx, tx.waiting)
	tx.waiting = &pgx.Batch{} // the answers still use the old one
	for range before {
		if _, err := answers.Exec(); err != nil {
			answers.Close()
			return nil, err
		}
	}
	rows, err := answers.Query()
	if err != nil {
		answers.Close()
		return nil, err
	}
	return &watermillTrip{Rows: rows, answers: answers}, nil
}

// watermillTrip ends the pipeline with its rows: watermill-sql closes them only after the handlers, and does not ask
// the rows for their error.
type watermillTrip struct {
	pgx.Rows
	answers pgx.BatchResults
	err     error
}

// Next frees the connection at the last row.
func (t *watermillTrip) Next() bool {
	if t.Rows.Next() {
		return true
	}
	_ = t.Close() // whose error comes again
	return false
}

func (t *watermillTrip) Close() error {
	if t.answers != nil {
		t.Rows.Close()
		t.err = errors.Join(t.Err(), t.answers.Close())
		t.answers = nil
	}
	return t.err
}

func (tx *watermillTx) Commit() error {
	if tx.conn == nil {
		return sql.ErrTxDone
	}
	defer tx.release()
	tx.waiting.Queue("commit")
	return tx.conn.SendBatch(tx.ctx, tx.waiting).Close()
}

func (tx *watermillTx) Rollback() error {
	if tx.conn == nil {
		return sql.ErrTxDone
	}
	defer tx.release()
	_, err := tx.conn.Exec(context.WithoutCancel(tx.ctx), "rollback")
	return err
}

func (tx *watermillTx) release() {
	tx.conn.Release()
	tx.conn = nil
}
