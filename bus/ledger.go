package bus

import (
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ledgerTimeout is for batches that wait for each other: behind a pooler each has a session in hand, and needs another one. One that
// waits for longer is rolled back, and taken again.
const ledgerTimeout = 5 * time.Second

// suspect is a message with which processes died.
type suspect struct {
	position
	deaths int
	alone  int // of these, with nothing else in hand
}

// side runs statements in a transaction of their own, on another connection than the batch's: what they write must
// be there when this process is not.
func (b *batch) side(ctx context.Context, queue func(*pgx.Batch)) error {
	pipeline := &pgx.Batch{}
	pipeline.Queue(b.bus.sql.Get("open"))
	pipeline.Queue(b.bus.sql.Get("lazily"))
	queue(pipeline)
	return b.bus.pool.SendBatch(ctx, pipeline).Close()
}

// enterLedger says that this process has the batch in hand. Most messages never were in other hands, which their rows
// show; for the rest it looks for batches of processes that died, and returns the suspects.
func (b *batch) enterLedger(ctx context.Context, alone bool) ([]suspect, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	due, id := ledgerKeys(b.messages)
	returning := slices.DeleteFunc(slices.Clone(b.messages), func(m *message) bool { return !m.touched })
	oldDue, oldID := ledgerKeys(returning)
	var found []oldBatch
	b.entered = newID()
	err := b.side(ctx, func(pipeline *pgx.Batch) {
		pipeline.Queue(b.bus.sql.Get("enter_batch"), b.entered, b.queue.id, b.bus.session.id, alone, due, id)
		if len(returning) > 0 {
			pipeline.Queue(b.bus.sql.Get("old_batches"), b.queue.id, b.bus.session.id, oldID).Query(func(rows pgx.Rows) (err error) {
				found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[oldBatch])
				return err
			})
		}
	})
	if err != nil || len(returning) == 0 {
		return nil, err
	}
	if len(found) > 0 {
		if err := b.chargeBatches(ctx, found); err != nil {
			return nil, err
		}
	}
	return b.readSuspects(ctx, oldDue, oldID)
}

// oldBatch is a batch of another process that had some of our messages in hand.
type oldBatch struct{ ID, Session saga.ID }

// chargeBatches makes suspects of all messages of batches whose processes died. Rarely, one of these is alive: it lost its
// connection, and could not say that its batch was over.
func (b *batch) chargeBatches(ctx context.Context, found []oldBatch) error {
	var sessions []saga.ID
	for _, old := range found {
		if !slices.Contains(sessions, old.Session) {
			sessions = append(sessions, old.Session)
		}
	}
	dead, err := b.whoDied(ctx, sessions)
	if err != nil {
		return err
	}
	var charged []saga.ID
	for _, old := range found {
		if dead[old.Session] {
			charged = append(charged, old.ID)
		}
	}
	if len(charged) == 0 {
		return nil
	}
	return b.side(ctx, func(pipeline *pgx.Batch) { pipeline.Queue(b.bus.sql.Get("charge_batches"), uuidsOf(charged)) })
}

// whoDied asks again when a session seems to be alive whose messages came back: the connections of a dead process end
// one after another.
func (b *batch) whoDied(ctx context.Context, sessions []saga.ID) (dead map[saga.ID]bool, err error) {
	for n := range askAgain {
		if n > 0 && run.Sleep(ctx, askGap) != nil {
			break
		}
		if dead, err = b.bus.session.dead(ctx, sessions, true); err != nil || len(dead) == len(sessions) {
			break
		}
	}
	return dead, err
}

func (b *batch) readSuspects(ctx context.Context, due []time.Time, id [][16]byte) (found []suspect, err error) {
	err = b.side(ctx, func(pipeline *pgx.Batch) {
		pipeline.Queue(b.bus.sql.Get("suspects"), b.queue.id, due, id).Query(func(rows pgx.Rows) error {
			f := suspect{}
			_, err := pgx.ForEachRow(rows, []any{&f.due, &f.id, &f.deaths, &f.alone}, func() error {
				f.due = f.due.UTC()
				found = append(found, f)
				return nil
			})
			return err
		})
	})
	return found, err
}

// queueLedger says in the batch's own transaction that it is over, and acquits a suspect.
func (b *batch) queueLedger(pipeline *pgx.Batch) {
	if b.entered.IsZero() {
		return
	}
	pipeline.Queue(b.bus.sql.Get("leave_batch"), b.entered)
	if m := b.messages[0]; m.suspected {
		pipeline.Queue(b.bus.sql.Get("strike_out"), b.queue.id, m.due, m.id)
	}
}

// leaveLedger says that a batch which is rolled back is over. When it cannot, the next renewal of the session does, and others
// see that this process lives.
func (b *batch) leaveLedger(ctx context.Context) {
	if b.entered.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := b.side(ctx, func(pipeline *pgx.Batch) { pipeline.Queue(b.bus.sql.Get("leave_batch"), b.entered) }); err != nil {
		b.bus.log.Debug("edda: leave the crash ledger", "endpoint", b.name, "error", err)
		b.bus.session.leaveLater(b.entered)
	}
	b.entered = saga.ID{}
}

// ledgerKeys is for connections that do not know our own arrays.
func ledgerKeys(messages []*message) (due []time.Time, id [][16]byte) {
	due, id = make([]time.Time, len(messages)), make([][16]byte, len(messages))
	for i, m := range messages {
		due[i], id[i] = m.due, m.id
	}
	return due, id
}
