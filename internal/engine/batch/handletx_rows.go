package batch

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// notedRows notes an error that a query meets after it began.
type notedRows struct {
	pgx.Rows
	tx *stepTx
}

func (r notedRows) Close() {
	r.Rows.Close()
	_ = r.tx.note(r.Rows.Err()) // kept for the verdict on the step; the handler reads Err itself
}

func (r notedRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		_ = r.tx.note(r.Rows.Err())
	}
	return more
}

// oneRow reads the first row of a query, like pgx's own Row.
type oneRow struct{ rows pgx.Rows }

func (r oneRow) Scan(dest ...any) error {
	defer r.rows.Close()
	if err := r.rows.Err(); err != nil {
		return err
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// notedBatch notes the error of a batch of statements.
type notedBatch struct {
	pgx.BatchResults
	tx *stepTx
}

func (r notedBatch) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	return tag, r.tx.note(err)
}

func (r notedBatch) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	return notedRows{Rows: rows, tx: r.tx}, r.tx.note(err)
}

func (r notedBatch) QueryRow() pgx.Row {
	rows, _ := r.Query()
	return oneRow{rows}
}

func (r notedBatch) Close() error { return r.tx.note(r.BatchResults.Close()) }

// Tx is nil: a batch of a handler cannot begin a transaction of its own.
func (r notedBatch) Tx() pgx.Tx { return nil }

// queued lists the statements of a batch.
func queued(batch *pgx.Batch) []string {
	var statements []string
	for _, q := range batch.QueuedQueries {
		statements = append(statements, q.SQL)
	}
	return statements
}

// failedRows are the rows of a transaction that cannot be used.
type failedRows struct {
	pgx.Rows
	err error
}

func (r failedRows) Close()            {}
func (r failedRows) Err() error        { return r.err }
func (r failedRows) Next() bool        { return false }
func (r failedRows) Scan(...any) error { return r.err }

// nestedTx is a savepoint that the handler opened with Begin.
type nestedTx struct {
	*stepTx
	name   string
	closed bool
}

// nested opens a savepoint of the handler inside the step's.
func (s *sharedTx) nested(ctx context.Context, t *stepTx) (pgx.Tx, error) {
	s.savepoint++
	name := fmt.Sprintf("edda_user_%d", s.savepoint)
	if _, err := s.conn.Exec(ctx, "savepoint "+name); err != nil {
		return nil, t.note(err)
	}
	return &nestedTx{stepTx: t, name: name}, nil
}

func (n *nestedTx) Commit(ctx context.Context) error { return n.end(ctx, "release savepoint ") }

func (n *nestedTx) Rollback(ctx context.Context) error {
	return n.end(ctx, "rollback to savepoint ")
}

func (n *nestedTx) end(ctx context.Context, how string) error {
	switch {
	case n.stepTx.closed:
		return errStepOver
	case n.closed:
		return pgx.ErrTxClosed
	}
	n.closed = true
	_, err := n.shared.conn.Exec(ctx, how+n.name)
	return n.note(err)
}
