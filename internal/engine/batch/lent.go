package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// The connection of a batch is lent to its HandleTx handlers. Each may change settings for the handlers after it:
// with SET LOCAL until the batch ends, with SET until the connection does. Changes that the engine recognises in a
// statement are reset before the next handler runs a statement, and before the batch is written. Other changes show
// by their effects: an error of a connection that was lent is held against the messages, like other errors, and never
// stops the endpoint. The connection is closed.

// lentSettings are the settings that are reset. The settings of role and rights come first.
var lentSettings = []string{
	"session_authorization", "role", "search_path", "row_security", "session_replication_role",
	"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout",
	"synchronous_commit",
	"client_encoding", "standard_conforming_strings", "bytea_output", "DateStyle", "IntervalStyle", "TimeZone",
}

// lending holds the settings of a connection before it was lent to handlers.
type lending struct{ names, values []string }

const lendingKey = "edda"

func lendingOf(conn *pgx.Conn) *lending {
	l, _ := conn.PgConn().CustomData()[lendingKey].(*lending)
	return l
}

// sharedTx is a transaction that a batch shares with its handlers.
type sharedTx struct {
	engine *Engine
	conn   *pgx.Conn

	userReady bool       // it has the settings that a user's handler expects
	hurried   bool       // its lock_timeout is short, because handlers share it
	savepoint int        // number of savepoints so far; 0 while no handler has run a statement in it
	stepOpen  bool       // the savepoint of the last step exists
	altered   alteration // settings that a handler has changed and that are not yet reset
}

// openToUser gives a handler the planner settings of its session, and its statements a short lock_timeout while other
// messages share the transaction.
func (s *sharedTx) openToUser(ctx context.Context, several, waited bool) error {
	if s.userReady {
		return nil
	}
	s.userReady = true
	pipeline := &pgx.Batch{}
	s.queueLending(pipeline, waited)
	p := s.engine.Planner
	pipeline.Queue(s.engine.sql.Get("plain_planner"), p[0], p[1], p[2], p[3], p[4], p[5])
	if several {
		s.hurried = true
		pipeline.Queue(queue.LockTimeout(), batchLockTimeout)
	}
	if err := s.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("prepare the transaction for a handler: %w", err)
	}
	return nil
}

// queueLending reads the settings of a connection before it is lent for the first time, and marks the connection.
// Behind a pooler each transaction may have a different session of the server, so the settings are read for each.
func (s *sharedTx) queueLending(pipeline *pgx.Batch, waited bool) {
	// a batch that waited for an instance has set its lock_timeout
	if waited || lendingOf(s.conn) != nil && !s.engine.PollOnly {
		return
	}
	l := &lending{}
	s.conn.PgConn().CustomData()[lendingKey] = l
	read := func(row pgx.Row) error { return row.Scan(&l.names, &l.values) }
	pipeline.Queue(s.engine.sql.Get("lent_settings"), lentSettings).QueryRow(read)
}

// takeBack releases the savepoint of the step before, which ends a read-only mode that the step may have set, and
// resets the settings that it may have changed.
func (s *sharedTx) takeBack(pipeline *pgx.Batch) {
	if s.stepOpen {
		s.stepOpen = false
		pipeline.Queue("release savepoint edda_step")
	}
	s.takeSettingsBack(pipeline)
}

// takeBackNow is takeBack in a trip of its own, if there are settings to reset: pgx prepares new statements before
// any statement of a pipeline runs, and the role that a handler has set may not be allowed to.
func (s *sharedTx) takeBackNow(ctx context.Context, queue func(*pgx.Batch)) error {
	if s.altered == altersNothing {
		return nil
	}
	pipeline := &pgx.Batch{}
	if queue(pipeline); pipeline.Len() == 0 {
		return nil
	}
	if err := s.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("reset a handler's settings: %w", err)
	}
	return nil
}

// takeBackSettings is takeBackNow without the savepoint: the step continues.
func (s *sharedTx) takeBackSettings(ctx context.Context) error {
	return s.takeBackNow(ctx, s.takeSettingsBack)
}

func (s *sharedTx) takeSettingsBack(pipeline *pgx.Batch) {
	l := lendingOf(s.conn)
	if s.altered == altersNothing || l == nil || l.names == nil {
		return
	}
	ours := ""
	if s.hurried {
		ours = batchLockTimeout
	}
	pipeline.Queue(s.engine.sql.Get("take_back"), l.names, l.values, s.altered == altersTransaction, ours)
	s.altered = altersNothing
	if s.hurried {
		pipeline.Queue(queue.LockTimeout(), batchLockTimeout)
	}
}

// tampered reports whether an error shows that a handler has changed more than rows, in a transaction where a handler
// has run.
func tampered(class pgerr.Class) bool {
	return class == pgerr.Denied || class == pgerr.Mispooled || class == pgerr.ReadOnly
}

var errLent = errors.New("on a connection that handlers used, and that is closed")

// refuseLent closes a connection that handlers have used, if an error shows that its state has changed, or may have.
func (b *batch) refuseLent(ctx context.Context, err error) error {
	if lendingOf(b.in.Conn) == nil {
		return err
	}
	class := pgerr.ClassOf(err)
	race := class == pgerr.Race || class == pgerr.Busy || class == pgerr.GuardFailed
	if !Fatal(err) && (len(b.in.Messages) > 0 || race) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if closeErr := b.in.Conn.Close(ctx); closeErr != nil {
		b.engine.To.Log.Debug("edda: rollback failed", "endpoint", b.engine.To.Name, "error", closeErr)
	}
	return fmt.Errorf("%w (%w)", err, errLent)
}

// ownPlanner resets the planner settings after handlers.
func (s *sharedTx) ownPlanner(pipeline *pgx.Batch) {
	if s.userReady {
		s.userReady = false
		s.takeBack(pipeline)
		queue.Open(pipeline, nil)
	}
}
