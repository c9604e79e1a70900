package leased

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// finishing is one transaction of the finisher.
type finishing struct {
	*Terms
	held    *claims
	lanes   *lanes
	claims  []*claimed
	won     []bool           // by place in claims: the claim was in force
	effects *outcome.Effects // of the claims that won
	writes  bool             // there is more to write than deletions
	sent    bool             // the COMMIT was sent, so that an error leaves its outcome unknown
	plan    lanePlan
	slots   map[limit.Slot]bool // slots that are ours, and stay so until our COMMIT
	freed   *limit.Released
}

func newFinishing(f *finisher, conn *pgx.Conn, claims []*claimed) *finishing {
	t := &finishing{Terms: f.Terms, held: f.claims, lanes: f.lanes, claims: claims,
		won: make([]bool, len(claims))}
	t.effects = &outcome.Effects{
		In: &message.Decoder{
			Tally: message.Tally{To: f.To}, Conn: conn,
			Rehearses: len(claims) == 1 && claims[0].trouble.rehearses(),
		},
		Ended: true, Also: t.queueRights,
		Keep: func(pipeline *pgx.Batch) {
			f.history.Begin(t.effects) // the time has been read by now
			f.history.Queue(pipeline)
		},
	}
	t.writes = t.guarded()
	for _, m := range claims {
		t.effects.In.Carry(&m.msg, m.failed)
		t.writes = t.writes || m.msg.Firing.Emitted || !m.release &&
			(m.msg.Fate != message.FateDone || len(m.msg.Step.Out) > 0 || f.history.Keeps(&m.msg))
	}
	return t
}

// commit runs the transaction.
func (t *finishing) commit(ctx context.Context) error {
	if err := t.recheck(ctx); err != nil {
		return err
	}
	if err := t.lockRights(ctx); err != nil {
		return err
	}
	t.sent = !t.writes
	if err := t.end(ctx); err != nil || !t.writes {
		return err
	}
	t.planLanes()
	if t.strayed() {
		return errLaneLost // this process has lost the lane since end checked; the next try takes that into account
	}
	t.sent = !t.effects.In.Rehearses
	if err := t.effects.ClaimIDs(ctx); err != nil {
		return err
	}
	known, err := t.To.Routes.Get(ctx, t.effects.In.Conn)
	if err != nil {
		return err
	}
	return t.effects.Commit(ctx, &pgx.Batch{}, known)
}

// recheck makes failures of messages that cannot be written: the server refused an earlier finish of theirs, or a
// queue that they send to was dropped since the handler ended.
func (t *finishing) recheck(ctx context.Context) error {
	known, err := t.To.Routes.Get(ctx, t.effects.In.Conn)
	if err != nil {
		return err
	}
	for _, m := range t.claims {
		if err := t.To.Memory.FailureOf(m.msg.ID); err != nil && m.msg.Fate == message.FateDone {
			m.decoder.Fail(&m.msg, err)
			t.writes = true
		}
		for n := range m.msg.Step.Out {
			out := &m.msg.Step.Out[n]
			if out.Info.Intent == saga.Event && out.To == "" {
				continue
			}
			if _, err := t.effects.QueuesFor(known, out, false); err != nil {
				m.decoder.Fail(&m.msg, err)
				t.writes = true
				break
			}
		}
	}
	return nil
}

// guarded reports whether ending a message also requires a lane or a slot, in addition to the claim.
func (t *finishing) guarded() bool {
	return t.Options.Ordered || slices.ContainsFunc(t.claims, func(m *claimed) bool { return m.slot != nil })
}

// lockRights begins the transaction. Until it ends, no process can take our slots, enter our lanes or park in them.
func (t *finishing) lockRights(ctx context.Context) error {
	if !t.guarded() {
		return nil
	}
	t.effects.In.Begin()
	pipeline := t.open()
	slots := slotsOf(t.claims)
	held := t.Limit.Store.QueueHeld(pipeline, slots)
	t.lockLanes(pipeline)
	if err := t.effects.In.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("lock lanes and slots: %w", pgerr.Explain(err))
	}
	t.slots = make(map[limit.Slot]bool, len(slots))
	for n, s := range slots {
		t.slots[s] = held[n]
	}
	return nil
}

// end deletes finished messages and puts released ones back, if their claims are in force.
func (t *finishing) end(ctx context.Context) error {
	pipeline := &pgx.Batch{}
	if !t.guarded() {
		t.effects.In.Begin()
		pipeline = t.open()
	}
	t.queueEnds(pipeline)
	finishRuns := t.queueRunCheck(pipeline)
	if !t.writes {
		pipeline.Queue("commit")
	}
	if pipeline.Len() == 0 {
		return nil
	}
	if err := t.effects.In.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("finish: %w", pgerr.Explain(err))
	}
	finishRuns()
	for n, m := range t.claims {
		if t.won[n] && !m.release {
			t.effects.In.Add(&m.msg)
		}
	}
	return nil
}

// queueEnds queues the deletion of finished messages, and the release of messages that return to the queue.
func (t *finishing) queueEnds(pipeline *pgx.Batch) {
	var deleted, released []int // by place in claims
	for n, m := range t.claims {
		switch {
		case m.key != "" && !t.plan.held[m.key] || m.slot != nil && !t.slots[*m.slot]: // lost with its lane or slot
		case t.isStray(m):
		case m.release && m.key != "": // parked again, see planLanes
			t.won[n] = true
		case m.release:
			released = append(released, n)
		default:
			deleted = append(deleted, n)
		}
	}
	t.queueEnd(pipeline, t.To.Queue.SQL("finish"), deleted)
	t.queueEnd(pipeline, t.To.Queue.SQL("release"), released)
}

func (t *finishing) queueEnd(pipeline *pgx.Batch, sql string, at []int) {
	if len(at) == 0 {
		return
	}
	p := placesOf(func(yield func(int, *claimed) bool) {
		for _, n := range at {
			yield(n, t.claims[n])
		}
	})
	pipeline.Queue(sql, p.due, p.id, p.number, p.place, t.session()).Query(t.collect)
}

// collect notes the places of the claims that were in force. A message whose handler failed before it was told of a
// cancel is not tried again: its row would be a new one, without the cancel.
func (t *finishing) collect(rows pgx.Rows) error {
	for rows.Next() {
		r := pg.CurrentRow(rows)
		n := r.Int(0)
		t.won[n] = true
		t.effects.In.Read(r.Time(1))
		if m := t.claims[n]; !r.Null(2) && !m.release &&
			(m.msg.Fate == message.FateAgain || m.msg.Fate == message.FateDead) {
			m.msg.CallOff(queue.CancelReason(r.Text(2)), m.msg.Err)
		}
	}
	return rows.Err()
}

// queueRunCheck queues the check of runs, as a batch does. It checks the runs of all claims, because it is not known
// yet which claims are in force. A claim that is not in force decides nothing: a different claim of the same message
// may be in force in the same finish.
func (t *finishing) queueRunCheck(pipeline *pgx.Batch) (settle func()) {
	if !t.effects.In.Fired {
		return func() {}
	}
	messages := make([]*message.Message, len(t.claims))
	for n, m := range t.claims {
		messages[n] = &m.msg
	}
	lost := func(m *message.Message) bool { return !t.won[slices.Index(messages, m)] }
	return outcome.QueueRunCheck(t.To.Runs, pipeline, messages, lost)
}

// queueRights queues the statements for lanes, slots and runs that go before the COMMIT.
func (t *finishing) queueRights(pipeline *pgx.Batch) {
	t.queueLanes(pipeline)
	t.queueSlots(pipeline)
	t.queueRests(pipeline)
}

// queueRests ends the heartbeats of runs whose messages return to their queue.
func (t *finishing) queueRests(pipeline *pgx.Batch) {
	if !t.effects.In.Fired {
		return
	}
	var a runs.Attempts
	for n, m := range t.claims {
		if t.won[n] && m.msg.Firing.Run != nil && (m.release || m.msg.Fate == message.FateAgain) {
			a.Add(m.msg.Firing.Run)
		}
	}
	if a.Len() > 0 {
		t.To.Runs.QueueRest(pipeline, a)
	}
}

// wakeReleased wakes other processes if messages went back to the queue.
func (t *finishing) wakeReleased() {
	if slices.ContainsFunc(t.claims, func(m *claimed) bool { return m.release }) {
		t.effects.NoteWake(t.To.Queue, time.Time{})
	}
}
