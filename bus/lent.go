package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/jackc/pgx/v5"
)

// The connection of a batch is lent to its HandleTx handlers, and each may change it for those that come after: with
// SET LOCAL until the batch ends, with SET until the connection does. What a handler was seen to set is taken back
// before the next one runs a statement, and before the batch is written. What it did unseen is found out by its
// effects: an error of a connection that was lent blames the messages, as others do, and never stops the endpoint. The
// connection is closed.

// lentSettings is what is taken back. Whose rights the session has comes first.
var lentSettings = []string{
	"session_authorization", "role", "search_path", "row_security", "session_replication_role",
	"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout",
	"synchronous_commit",
	"client_encoding", "standard_conforming_strings", "bytea_output", "DateStyle", "IntervalStyle", "TimeZone",
}

// lending is what is known of a connection that handlers have had.
type lending struct{ names, values []string }

const lendingKey = "edda"

func lendingOf(conn *pgx.Conn) *lending {
	l, _ := conn.PgConn().CustomData()[lendingKey].(*lending)
	return l
}

// queueLending reads the settings of a connection before it is lent for the first time, and marks it. Behind a pooler
// each transaction may have another session of the server, so they are read for each.
func (b *batch) queueLending(pipeline *pgx.Batch) {
	// one that waited for an instance has set its lock_timeout
	if b.waited.def != nil || lendingOf(b.conn) != nil && b.ep.bus.wakeup != PollOnly {
		return
	}
	l := &lending{}
	b.conn.PgConn().CustomData()[lendingKey] = l
	read := func(row pgx.Row) error { return row.Scan(&l.names, &l.values) }
	pipeline.Queue(b.ep.bus.sql.Get("lent_settings"), lentSettings).QueryRow(read)
}

// takeBack ends what the step before left: its savepoint, and with it that it made the transaction read-only, and the
// settings that it may have changed.
func (b *batch) takeBack(pipeline *pgx.Batch) {
	if b.stepOpen {
		b.stepOpen = false
		pipeline.Queue("release savepoint edda_step")
	}
	b.takeSettingsBack(pipeline)
}

// takeBackNow is takeBack in a trip of its own, where there are settings to take back: statements of ours that the
// connection does not know yet are prepared before any of them runs, and the role that a handler has set may not do
// that.
func (b *batch) takeBackNow(ctx context.Context, queue func(*pgx.Batch)) error {
	if b.altered == altersNothing {
		return nil
	}
	pipeline := &pgx.Batch{}
	if queue(pipeline); pipeline.Len() == 0 {
		return nil
	}
	if err := b.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("take a handler's settings back: %w", err)
	}
	return nil
}

// takeBackSettings is takeBackNow without the savepoint: the step goes on.
func (b *batch) takeBackSettings(ctx context.Context) error {
	return b.takeBackNow(ctx, b.takeSettingsBack)
}

func (b *batch) takeSettingsBack(pipeline *pgx.Batch) {
	l := lendingOf(b.conn)
	if b.altered == altersNothing || l == nil || l.names == nil {
		return
	}
	ours := ""
	if b.hurried {
		ours = batchLockTimeout
	}
	pipeline.Queue(b.ep.bus.sql.Get("take_back"), l.names, l.values, b.altered == altersTransaction, ours)
	b.altered = altersNothing
	if b.hurried {
		pipeline.Queue(queue.LockTimeout(), batchLockTimeout)
	}
}

// tampered reports whether an error shows that a handler has changed more than rows, in a transaction in which one has
// run.
func tampered(class pg.Class) bool {
	return class == pg.Denied || class == pg.Mispooled || class == pg.ReadOnly
}

var errLent = errors.New("on a connection that handlers have had, which is closed")

// refuseLent closes a connection that handlers have had, where an error shows that it is not what it was, or may not
// be.
func (b *batch) refuseLent(ctx context.Context, err error) error {
	if lendingOf(b.conn) == nil {
		return err
	}
	class := pg.ClassOf(err)
	race := class == pg.Race || class == pg.Busy || class == pg.GuardFailed
	if !fatal(err) && (len(b.messages) > 0 || race) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if closeErr := b.conn.Close(ctx); closeErr != nil {
		b.ep.bus.log.Debug("edda: rollback", "endpoint", b.ep.name, "error", closeErr)
	}
	return fmt.Errorf("%w (%w)", err, errLent)
}
