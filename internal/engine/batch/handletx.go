package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	MostTx           = 60    // savepoints of one transaction; from 64 on Postgres writes subtransactions to disk
	batchLockTimeout = "5ms" // far below deadlock_timeout: a batch that waits holds its neighbours' rows
)

// errEndedTx means that the handler ran COMMIT or ROLLBACK. The locks of every message of the batch are lost.
var errEndedTx = errors.New("the handler ended the batch's transaction with SQL of its own")

// handleTx runs a plain handler on the batch's transaction. If the handler fails, its changes are rolled back, and
// the changes of other messages stay. A nil outcome leaves the message in the queue. An error is the batch's: its
// transaction is lost.
func (s *stepper) handleTx(ctx context.Context, m *message.Message) (*saga.Outcome, error) {
	if s.shared.savepoint >= MostTx {
		s.in.Stop()
		return nil, nil
	}
	if err := s.shared.openToUser(ctx, len(s.in.Messages) > 1, s.loader.waits.Holder.Of != nil); err != nil {
		return nil, err
	}
	tx := &stepTx{shared: s.shared}
	sent, err := m.Consumer.Tx(ctx, handlers.Call{Runtime: &s.in.Runtime, Delivery: &m.Delivery, Tx: tx,
		Handlers: s.in.To.Handlers})
	s.in.Hand.Return()
	tx.leave()
	switch {
	case tx.unready != nil && ctx.Err() == nil: // settings of an earlier step may be the reason
		return nil, fmt.Errorf("open the savepoint of %s: %w", m.Kind, tx.unready)
	case s.in.Conn.IsClosed() || tx.lost != nil:
		return nil, s.blame.lostIn(ctx, m, errors.Join(err, tx.lost))
	case s.in.Conn.PgConn().TxStatus() == 'I':
		s.engine.To.Memory.FailNext(m.ID, saga.Permanent(errEndedTx))
		return nil, fmt.Errorf("handle %s: %w", m.Kind, errEndedTx)
	case saga.Succeeded(err) && s.in.Conn.PgConn().TxStatus() == 'E':
		err = fmt.Errorf("a statement failed and the handler returned nil: %w", tx.failed)
	}
	out := s.in.Outcome(ctx, sent, err)
	if out.Err == nil && out.Discard == "" {
		return &out, nil
	}
	if err := tx.undo(ctx); err != nil {
		if !s.in.Conn.IsClosed() {
			return nil, err
		}
		return nil, s.blame.lostIn(ctx, m, errors.Join(out.Err, err))
	}
	return s.blame.judge(m, tx, out), nil
}

// IsHandlers reports whether tx is the transaction of a handler, or was begun by a handler in it.
func IsHandlers(tx any) bool {
	switch tx.(type) {
	case *stepTx, *nestedTx:
		return true
	}
	return false
}

// stepTx is the transaction that a handler receives. The first statement of a step opens its savepoint.
type stepTx struct {
	shared  *sharedTx
	open    bool // the savepoint of this step exists
	closed  bool
	unready error  // the error of opening the savepoint
	failed  error  // the error of the last statement that failed
	lost    error  // the error of a statement that lost the connection
	end     func() // ends the last query or batch, which the handler may have left open
}

var (
	errNotYours = errors.New("the transaction belongs to the batch: return nil to commit, an error to undo")
	errStepOver = errors.New("the transaction was used after the handler returned")

	errNotYourStatements = errors.New("the connection's prepared statements belong to the batch: deallocate by name")
)

// enter opens the savepoint of the step, once. First it releases the savepoint of the previous step, so that
// savepoints do not nest, and resets settings that the previous step has changed. It refuses statements that would
// end the transaction.
func (t *stepTx) enter(ctx context.Context, statements ...string) error {
	switch {
	case t.closed:
		return errStepOver
	case slices.ContainsFunc(statements, endsTransaction):
		return errNotYours
	case slices.ContainsFunc(statements, endsStatements):
		return errNotYourStatements
	}
	s := t.shared
	if !t.open {
		pipeline := &pgx.Batch{}
		s.takeBack(pipeline)
		pipeline.Queue("savepoint edda_step")
		if err := t.note(s.conn.SendBatch(ctx, pipeline).Close()); err != nil {
			t.unready = err
			return err
		}
		s.savepoint++
		s.stepOpen, t.open = true, true
	}
	for _, sql := range statements {
		s.altered = max(s.altered, altersSettings(sql))
	}
	return nil
}

// leave closes the transaction to the handler. Rows that the handler left open would keep the connection busy.
func (t *stepTx) leave() {
	t.closed = true
	if t.end != nil {
		t.end()
	}
}

// note remembers an error, even if the handler ignores it.
func (t *stepTx) note(err error) error {
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.failed = err
		if t.shared.conn.IsClosed() {
			t.lost = err
		}
	}
	return err
}

// undo rolls back everything that the step wrote.
func (t *stepTx) undo(ctx context.Context) error {
	if !t.open {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := t.shared.conn.Exec(ctx, "rollback to savepoint edda_step"); err != nil {
		return fmt.Errorf("undo a handler's writes: %w", err)
	}
	return nil
}

func (t *stepTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	return t.shared.nested(ctx, t)
}

func (t *stepTx) Commit(context.Context) error   { return errNotYours }
func (t *stepTx) Rollback(context.Context) error { return errNotYours }
func (t *stepTx) Conn() *pgx.Conn                { return nil }

func (t *stepTx) LargeObjects() pgx.LargeObjects {
	panic("bus: large objects are not supported in a handler's transaction")
}

func (t *stepTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.enter(ctx, sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := t.shared.conn.Exec(ctx, sql, args...)
	return tag, t.note(err)
}

func (t *stepTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.enter(ctx, sql); err != nil {
		return failedRows{err: err}, err
	}
	rows, err := t.shared.conn.Query(ctx, sql, args...)
	t.end = func() { notedRows{Rows: rows, tx: t}.Close() }
	return notedRows{Rows: rows, tx: t}, t.note(err)
}

func (t *stepTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := t.Query(ctx, sql, args...)
	return oneRow{rows}
}

func (t *stepTx) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	if err := t.enter(ctx, queued(batch)...); err != nil {
		return pgx.FailedBatchResults(batch, err)
	}
	results := t.shared.conn.SendBatch(ctx, batch)
	t.end = func() { _ = t.note(results.Close()) } // kept for the verdict on the step
	return notedBatch{BatchResults: results, tx: t}
}

func (t *stepTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string,
	source pgx.CopyFromSource) (int64, error) {
	if err := t.enter(ctx); err != nil {
		return 0, err
	}
	n, err := t.shared.conn.CopyFrom(ctx, table, columns, source)
	return n, t.note(err)
}

func (t *stepTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.enter(ctx, sql); err != nil {
		return nil, err
	}
	d, err := t.shared.conn.Prepare(ctx, name, sql)
	return d, t.note(err)
}
