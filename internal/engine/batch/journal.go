package batch

import (
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// journalTimeout bounds the entry of a batch, which waits for other processes that count the same deaths.
const journalTimeout = 5 * time.Second

// suspect is a message that was in hand when processes died.
type suspect struct {
	queue.Position
	contention.Deaths
}

// enter records that this process has the batch in hand. Most messages were never taken before, as their rows show;
// for the others enter looks for batches of processes that died, and returns the suspects.
//
// The entry must be committed before a handler runs. A batch must not wait for a second connection for that while it
// keeps its own: behind a pooler the batches of all processes may have all sessions, and would wait for one more
// forever. So the transaction that took the messages commits the entry and ends, and a new one takes them again. Both
// go to the server in one trip, so other workers seldom take messages in between; if they do, they keep them.
func (j *journal) enter(ctx context.Context, alone bool) (found []suspect, err error) {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	returning := slices.DeleteFunc(slices.Clone(j.in.Messages),
		func(m *message.Message) bool { return !m.Crash.Touched })
	oldDue, oldID := journalKeys(returning)
	charged, err := j.deadBatches(ctx, oldID)
	if err != nil {
		return nil, err
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(j.engine.Session.SQL.Get("lazily"))
	if len(charged) > 0 {
		pipeline.Queue(j.engine.Session.SQL.Get("charge_batches"), membership.UUIDs(charged))
	}
	if len(returning) > 0 {
		pipeline.Queue(j.engine.Session.SQL.Get("suspects"), j.engine.To.Queue.ID, oldDue,
			oldID).Query(readSuspects(&found))
	}
	due, id := journalKeys(j.in.Messages)
	j.entered = j.engine.To.NewID()
	pipeline.Queue(j.engine.Session.SQL.Get("enter_batch"), j.entered, j.engine.To.Queue.ID, j.engine.Session.ID, alone,
		due,
		id)
	pipeline.Queue("commit")
	return found, j.takeAgain(ctx, pipeline)
}

// takeAgain sends the pipeline, followed by a take of the same messages. The batch keeps the messages that it gets.
func (j *journal) takeAgain(ctx context.Context, pipeline *pgx.Batch) error {
	before := slices.Clone(j.in.Messages)
	entered := make(map[queue.Position]bool, len(before))
	for _, m := range before {
		entered[m.Position()] = true
	}
	first := before[0].Position()
	j.in.Keep(func(*message.Message) bool { return false })
	j.taker.queueTake(pipeline, order{limit: len(before), after: first.Before()})
	if err := j.taker.sendTake(ctx, pipeline); err != nil {
		j.in.Keep(func(*message.Message) bool { return false })
		for _, m := range before {
			j.in.Add(m)
		}
		return pgerr.Explain(err)
	}
	j.in.Keep(func(m *message.Message) bool { return entered[m.Position()] })
	j.taker.outrun = len(j.in.Messages) == 0
	return nil
}

// oldBatch is a batch of a different process that had some of our messages in hand, and the server process that ran
// it.
type oldBatch struct {
	ID, Session saga.ID
	Backend     int
}

// deadBatches returns the batches with some of these messages whose processes died. In rare cases the process of a
// batch that is found is alive: it lost its connection, and could not record the end of its batch.
func (j *journal) deadBatches(ctx context.Context, ids [][16]byte) (died []saga.ID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := j.in.Conn.Query(ctx, j.engine.Session.SQL.Get("old_batches"), j.engine.To.Queue.ID,
		j.engine.Session.ID, ids)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[oldBatch])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	dead, err := j.whoDied(ctx, found)
	for _, old := range found {
		if dead[old.Session] {
			died = append(died, old.ID)
		}
	}
	return died, err
}

// whoDied checks again if the session of a batch whose messages came back seems to be alive: the connections of a
// dead process end one after another.
func (j *journal) whoDied(ctx context.Context, found []oldBatch) (dead map[saga.ID]bool, err error) {
	owners := make([]membership.Owner, len(found))
	for n, old := range found {
		owners[n] = membership.Owner{Session: old.Session, Backend: old.Backend}
	}
	for n := range askAgain {
		if n > 0 && run.Sleep(ctx, askGap) != nil {
			break
		}
		dead, err = j.engine.Session.Dead(ctx, j.in.Conn, owners)
		if err != nil || !slices.ContainsFunc(found, func(old oldBatch) bool { return !dead[old.Session] }) {
			break
		}
	}
	return dead, err
}

func readSuspects(found *[]suspect) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var at queue.Position
		var died contention.Deaths
		_, err := pgx.ForEachRow(rows, []any{&at.Due, &at.ID, &died.Counted, &died.Alone}, func() error {
			*found = append(*found, suspect{queue.Position{Due: at.Due.UTC(), ID: at.ID}, died})
			return nil
		})
		return err
	}
}

// queueLeave queues, for the batch's own transaction, the record that the batch is over, and clears a suspect.
func (j *journal) queueLeave(pipeline *pgx.Batch) {
	if j.entered.IsZero() {
		return
	}
	pipeline.Queue(j.engine.Session.SQL.Get("leave_batch"), j.entered)
	if m := j.in.Messages[0]; m.Crash.Suspected {
		pipeline.Queue(j.engine.Session.SQL.Get("strike_out"), j.engine.To.Queue.ID, m.Due, m.ID)
	}
}

// leave records that a batch which was rolled back is over. If that fails, the next renewal of the session does it,
// and until then others find that this process is alive. No transaction is open, so it may wait for a session of a
// pooler.
func (j *journal) leave(ctx context.Context) {
	if j.entered.IsZero() {
		return
	}
	if j.in.Conn.IsClosed() {
		j.leaveLater()
		return
	}
	left := j.entered
	j.entered = saga.ID{}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	pipeline := &pgx.Batch{} // without a BEGIN it is one transaction
	queue.Open(pipeline, nil)
	pipeline.Queue(j.engine.Session.SQL.Get("lazily"))
	pipeline.Queue(j.engine.Session.SQL.Get("leave_batch"), left)
	if err := j.in.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		j.engine.To.Log.Debug("edda: the in-flight journal was not cleared", "endpoint", j.engine.To.Name, "error", err)
		j.engine.Session.LeaveLater(left)
	}
}

// leaveLater records the end of the batch without the connection, with the next renewal.
func (j *journal) leaveLater() {
	if !j.entered.IsZero() {
		j.engine.Session.LeaveLater(j.entered)
		j.entered = saga.ID{}
	}
}

// journalKeys returns keys in types for connections that do not have our own array types.
func journalKeys(messages []*message.Message) (due []time.Time, id [][16]byte) {
	due, id = make([]time.Time, len(messages)), make([][16]byte, len(messages))
	for i, m := range messages {
		due[i], id[i] = m.Due, m.ID
	}
	return due, id
}
