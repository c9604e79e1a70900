package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ReadCommitted are the options of Edda's own transactions. Their statements wait for a lock and then read what the
// previous transaction has written. At a higher level they would read the rows as they were before the wait, or fail
// with a serialization failure.
//
// If no idle_in_transaction_session_timeout is set, such a transaction is ended after a minute. It waits for nothing
// but its own next statement, and the session of a machine that has vanished must not keep its locks for hours.
var ReadCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, BeginQuery: beginBounded}

// the access mode stays as it is, too
const beginBounded = "begin isolation level read committed;\n" +
	"select set_config('idle_in_transaction_session_timeout', '1min', true)\n" +
	"where current_setting('idle_in_transaction_session_timeout') = '0'"

// Begin and commit around a statement or a batch that is a transaction by itself. The access mode stays as it is: a
// read-only role stays read-only. They have names, so that a test that breaks a connection at the commit of a batch
// of messages does not match these.
const (
	beginAlone  = "-- name: begin_alone\nbegin isolation level read committed"
	commitAlone = "-- name: commit_alone\ncommit"
)

// Pool is a pool whose transactions are READ COMMITTED, whatever default_transaction_isolation is for the database,
// the role or the session. A statement or a batch outside of a transaction is one by itself: Exec, Row and SendBatch
// send it with BEGIN and COMMIT around it, in the same round trip.
//
// Four methods come from the inner pool. Query and QueryRow are for statements that only read: a single one reads the
// same at every level. BeginTx takes the level from its caller. Acquire returns a connection: use it through Conn.
//
// While the database is away all methods share one attempt to connect with the other pools of the process, see reach.
type Pool struct{ paced }

// paced is the inner pool, with the methods that may connect.
type paced struct {
	*pgxpool.Pool
	reach *reach
}

// Committed wraps a pool. With a nil pool, the result must not be used.
func Committed(pool *pgxpool.Pool) *Pool {
	if pool == nil {
		return &Pool{}
	}
	return &Pool{paced{pool, reachOf(pool.Config())}}
}

// await waits for an attempt to connect if the last one has failed.
func (p paced) await(ctx context.Context) error {
	return p.reach.await(ctx, func(ctx context.Context) error {
		conn, err := p.Pool.Acquire(ctx)
		if err == nil {
			conn.Release()
		}
		return err
	})
}

// Acquire acquires a connection.
func (p paced) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	conn, err := p.Pool.Acquire(ctx)
	return conn, p.reach.note(err)
}

// BeginTx begins a transaction.
func (p paced) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	tx, err := p.Pool.BeginTx(ctx, o)
	return tx, p.reach.note(err)
}

// Query runs a statement that only reads.
func (p paced) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	rows, err := p.Pool.Query(ctx, sql, args...)
	return rows, p.reach.note(err)
}

// QueryRow runs a statement that only reads when the row is scanned.
func (p paced) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		if err := p.await(ctx); err != nil {
			return err
		}
		return p.reach.note(p.Pool.QueryRow(ctx, sql, args...).Scan(dest...))
	})
}

// Begin begins a READ COMMITTED transaction.
func (p *Pool) Begin(ctx context.Context) (pgx.Tx, error) { return p.BeginTx(ctx, ReadCommitted) }

// Exec runs one statement.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return tag, err
	}
	defer conn.Release()
	return Conn{conn.Conn()}.Exec(ctx, sql, args...)
}

// Row is QueryRow for a statement that writes. It runs when the row is scanned.
func (p *Pool) Row(ctx context.Context, sql string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		conn, err := p.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return Conn{conn.Conn()}.Row(ctx, sql, args...).Scan(dest...)
	})
}

// Writing returns p for functions that read the rows of statements that write: its QueryRow is Row.
func (p *Pool) Writing() writer { return writer{p} }

// writer is a Pool whose QueryRow is Row.
type writer struct{ *Pool }

// QueryRow is Row.
func (w writer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return w.Row(ctx, sql, args...)
}

// SendBatch sends a batch, and commits it when every statement of it has succeeded.
func (p *Pool) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return sendCommitted(ctx, conn.Conn(), b, conn.Release)
}

// Conn wraps a connection as Pool wraps a pool. The connection must not be in a transaction.
type Conn struct{ *pgx.Conn }

// Begin begins a READ COMMITTED transaction.
func (c Conn) Begin(ctx context.Context) (pgx.Tx, error) { return c.BeginTx(ctx, ReadCommitted) }

// Exec runs one statement.
func (c Conn) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if len(args) > 0 {
		if _, ok := args[0].(pgx.QueryExecMode); ok { // such as Planned, which a batch does not support
			err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) (err error) {
				tag, err = tx.Exec(ctx, sql, args...)
				return err
			})
			return tag, err
		}
	}
	b := &pgx.Batch{}
	b.Queue(sql, args...).Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	return tag, c.SendBatch(ctx, b).Close()
}

// Row is QueryRow for a statement that writes. It runs when the row is scanned. It is committed even if it returns no
// row.
func (c Conn) Row(ctx context.Context, sql string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		none := false
		b := &pgx.Batch{}
		b.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
			err := row.Scan(dest...)
			if none = errors.Is(err, pgx.ErrNoRows); none {
				return nil
			}
			return err
		})
		err := c.SendBatch(ctx, b).Close()
		if err == nil && none {
			return pgx.ErrNoRows
		}
		return err
	})
}

// SendBatch sends a batch, and commits it when every statement of it has succeeded.
func (c Conn) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return sendCommitted(ctx, c.Conn, b, func() {})
}

type rowFunc func(dest ...any) error

func (f rowFunc) Scan(dest ...any) error { return f(dest...) }

func sendCommitted(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, done func()) pgx.BatchResults {
	whole := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, b.Len()+2)}
	whole.Queue(beginAlone)
	whole.QueuedQueries = append(whole.QueuedQueries, b.QueuedQueries...)
	whole.Queue(commitAlone)
	r := &committedResults{BatchResults: conn.SendBatch(ctx, whole), rollBack: func() { rollBack(ctx, conn) },
		done: done}
	// Reads the result of BEGIN, so that the first result is that of the caller's first statement. All later results
	// return its error.
	_, _ = r.Exec()
	return r
}

// committedResults ends the transaction of a batch that failed.
type committedResults struct {
	pgx.BatchResults
	rollBack, done func()
	closed         bool
}

func (r *committedResults) Close() error {
	err := r.BatchResults.Close()
	if r.closed {
		return err
	}
	r.closed = true
	if err != nil {
		r.rollBack()
	}
	r.done()
	return err
}

// rollBack ends the transaction that conn may be in, even if ctx has ended. If that fails within a second pgx closes
// the connection, which also ends the transaction.
func rollBack(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback")
}
