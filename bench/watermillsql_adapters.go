package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	wmsg "github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watermillAdapters are the statements that watermill-sql needs: a queue whose subscribers skip locked rows.
// The adapters that come with the library lock without skipping, so that subscribers would take turns.
type watermillAdapters struct {
	batch     int
	take, ack string
	insert    map[string]string // by topic
}

func newWatermillAdapters(schema string, batch int) watermillAdapters {
	text := statements(watermillSQL, schema)
	return watermillAdapters{batch: batch, take: text["take"], ack: text["ack"], insert: map[string]string{
		"sink": strings.ReplaceAll(text["insert"], ":topic", "sink"),
	}}
}

func (a watermillAdapters) InsertQuery(p wsql.InsertQueryParams) (wsql.Query, error) {
	if len(p.Msgs) != 1 {
		return wsql.Query{}, fmt.Errorf("publish %d messages: one at a time", len(p.Msgs))
	}
	m := p.Msgs[0]
	metadata, err := json.Marshal(m.Metadata)
	return wsql.Query{Query: a.insert[p.Topic], Args: []any{m.UUID, []byte(m.Payload), metadata}}, err
}

func (a watermillAdapters) SelectQuery(wsql.SelectQueryParams) (wsql.Query, error) {
	return wsql.Query{Query: a.take, Args: []any{a.batch}}, nil
}

func (watermillAdapters) UnmarshalMessage(p wsql.UnmarshalMessageParams) (wsql.Row, error) {
	var r wsql.Row
	var id string
	if err := p.Row.Scan(&r.Offset, &id, &r.Payload, &r.Metadata); err != nil {
		return r, err
	}
	r.Msg = wmsg.NewMessage(id, r.Payload)
	return r, json.Unmarshal(r.Metadata, &r.Msg.Metadata)
}

func (watermillAdapters) SchemaInitializingQueries(wsql.SchemaInitializingQueriesParams) ([]wsql.Query, error) {
	return nil, nil
}

func (watermillAdapters) SubscribeIsolationLevel() sql.IsolationLevel { return sql.LevelReadCommitted }

// watermillOffsets deletes acknowledged messages.
type watermillOffsets struct{ watermillAdapters }

// AckMessageQuery deletes no further than the last acknowledged row: watermill-sql names all rows that were taken.
func (o watermillOffsets) AckMessageQuery(p wsql.AckMessageQueryParams) (wsql.Query, error) {
	var offsets []int64
	for _, row := range p.Rows {
		offsets = append(offsets, row.Offset)
		if row.Offset == p.LastRow.Offset {
			break
		}
	}
	return wsql.Query{Query: o.ack, Args: []any{offsets}}, nil
}

func (watermillOffsets) ConsumedMessageQuery(wsql.ConsumedMessageQueryParams) (wsql.Query, error) {
	return wsql.Query{}, nil
}

func (watermillOffsets) NextOffsetQuery(wsql.NextOffsetQueryParams) (wsql.Query, error) {
	return wsql.Query{}, nil
}

func (watermillOffsets) SchemaInitializingQueries(wsql.OffsetsSchemaInitializingQueriesParams) ([]wsql.Query, error) {
	return nil, nil
}

func (watermillOffsets) BeforeSubscribingQueries(wsql.BeforeSubscribingQueriesParams) ([]wsql.Query, error) {
	return nil, nil
}

// watermillErrors is a logger that keeps the first error: a subscriber logs an error and retries, a benchmark must not.
type watermillErrors struct {
	watermill.NopLogger
	first chan error
}

func (w watermillErrors) Error(what string, err error, _ watermill.LogFields) {
	select {
	case w.first <- fmt.Errorf("%s: %w", what, err):
	default:
	}
}

func (w watermillErrors) With(watermill.LogFields) watermill.LoggerAdapter { return w }

// watermillDB begins transactions that save round trips. A statement that only writes waits for the next query or for
// the COMMIT and goes with it in a pipeline: begin and take, load, then save, publish, delete and COMMIT.
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

// ExecContext puts the statement into the pipeline. The next call that sends returns its error, at the latest Commit:
// the message is then not deleted and is redelivered.
func (tx *watermillTx) ExecContext(_ context.Context, query string, args ...any) (wsql.Result, error) {
	tx.waiting.Queue(query, args...)
	return wsql.PgxResult{}, nil
}

// QueryContext sends the waiting statements and the query in one round trip.
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
