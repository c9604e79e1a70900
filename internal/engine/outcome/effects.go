package outcome

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Effects are the writes of one transaction about its decided messages: sends, retries, dead letters, discards,
// removals and ends of runs. After the COMMIT they wake workers, log and emit events.
type Effects struct {
	In   *message.Decoder // the messages whose effects these are
	only [1]*queue.Queue

	forget []saga.ID              // claimed ids of messages that are not sent after all
	wakes  []wakeAfter            // the queues to wake after the COMMIT
	Ending []*contention.Instance // instances that complete, and began with a run
	Ended  bool                   // the messages are deleted already: a leased endpoint claimed them
	Keep   func(*pgx.Batch)       // queues the history
	Also   func(*pgx.Batch)       // queues further statements of the transaction, before the COMMIT
	Paused bool                   // the endpoint was paused: no other transaction held the row
}

// QueueAlso makes Commit queue further statements before the COMMIT.
func (e *Effects) QueueAlso(also func(*pgx.Batch)) { e.Also = also }

// End notes an instance that completes, and began with a run.
func (e *Effects) End(i *contention.Instance) { e.Ending = append(e.Ending, i) }

// Commit queues the effects after the statements in pipeline, and ends the transaction: it deletes exactly the
// messages that were decided, and commits. If any statement fails, the COMMIT does not run.
func (e *Effects) Commit(ctx context.Context, pipeline *pgx.Batch, known *queue.Routes) error {
	events, err := e.queueSends(pipeline, known)
	if err != nil {
		return err
	}
	e.queueAgain(pipeline)
	e.queueRecords(pipeline)
	if e.Keep != nil {
		e.Keep(pipeline)
	}
	e.queueRemoval(pipeline)
	if e.Also != nil {
		e.Also(pipeline)
	}
	if len(e.forget) > 0 {
		e.In.To.Sent.QueueForget(pipeline, e.forget)
	}
	if e.In.Pauses() {
		e.queuePause(pipeline)
	}
	e.queueRunEnds(pipeline)
	if events {
		e.In.To.Routes.QueueCheck(pipeline, known)
	}
	e.queueEnd(pipeline)
	if err := e.In.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("write: %w", pgerr.Explain(err))
	}
	if e.In.Rehearses {
		return ErrRehearsed
	}
	return nil
}

// ErrRehearsed ends a transaction that wrote the failure of a message on trial and rolled back. Errors of the
// database have failed the message, but an outage that has ended since would look the same. Now the database accepts
// writes: if the next step meets an error, the message is the cause.
var ErrRehearsed = errors.New("the failure of the message was written on trial, and rolled back")

// ClaimIDs claims the ids that handlers gave to their sends, and removes duplicate sends.
func (e *Effects) ClaimIDs(ctx context.Context) error {
	ids, senders := e.GivenIDs()
	if len(ids) == 0 {
		return nil
	}
	claim := e.In.To.Sent.NewClaim(ids)
	pipeline := &pgx.Batch{}
	claim.Queue(pipeline)
	if err := e.In.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("save: %w", pgerr.Explain(err))
	}
	return e.SortOutIDs(ids, senders, claim)
}

// GivenIDs lists the messages to be sent whose ids a handler chose.
func (e *Effects) GivenIDs() (ids []dedup.Given, senders []*message.Message) {
	for _, m := range e.In.Messages {
		for n := range m.Step.Out {
			if out := &m.Step.Out[n]; out.GivenID {
				ids = append(ids, dedup.Given{ID: out.Info.ID, Sum: dedup.Sum(out.Info.Kind, out.To, out.Body)})
				senders = append(senders, m)
			}
		}
	}
	return ids, senders
}

// SortOutIDs removes duplicates from the sends. If an id was used for other content, the handler is at fault; its
// effects are already part of this transaction, so the batch starts over and the step then fails.
//
// If several messages of the batch give one id, the first that has not lost its instance sends it. An id that no
// message sends is released.
func (e *Effects) SortOutIDs(ids []dedup.Given, senders []*message.Message, claim *dedup.Claim) error {
	if len(ids) == 0 {
		return nil
	}
	claimed := map[saga.ID]bool{} // by this batch, and not sent yet
	for n, m := range senders {
		switch claim.Outcome(n) {
		case dedup.Fresh:
			claimed[ids[n].ID] = true
		case dedup.Conflict:
			if m.Step.Out == nil {
				continue // it lost its instance, and sends nothing
			}
			err := fmt.Errorf("send with id %s: %w", ids[n].ID, dedup.ErrConflict)
			e.In.To.Memory.FailNext(m.ID, saga.Permanent(err))
			return err
		}
	}
	for _, m := range e.In.Messages {
		m.Unsend(func(out saga.Outgoing) bool {
			send := !out.GivenID || claimed[out.Info.ID]
			delete(claimed, out.Info.ID)
			return !send
		})
	}
	for id := range claimed {
		e.forget = append(e.forget, id)
	}
	return nil
}

// queueSends queues the sends of the steps, one statement for each queue, and reports whether they include events.
func (e *Effects) queueSends(pipeline *pgx.Batch, known *queue.Routes) (events bool, err error) {
	gone := e.cancelledTimeouts()
	targets := map[*queue.Queue]*queue.Inserts{}
	order := []*queue.Queue(nil)
	var header []byte
	for _, m := range e.In.Messages {
		for n := range m.Step.Out {
			out := &m.Step.Out[n]
			if out.Info.Intent == saga.Timer && gone[out.Info.ID] {
				continue // scheduled and cancelled in one batch
			}
			event := out.Info.Intent == saga.Event && out.To == ""
			events = events || event
			queues, err := e.QueuesFor(known, out, event)
			if err != nil {
				return false, err
			}
			header = wire.AppendHeader(header[:0], &out.Info)
			for _, q := range queues {
				r := targets[q]
				if r == nil {
					r = queue.NewInserts()
					targets[q], order = r, append(order, q)
				}
				r.Add(out, header)
				e.NoteWake(q, out.Info.Due)
			}
		}
	}
	for _, q := range order {
		targets[q].Queue(pipeline, q)
	}
	return events, nil
}

// QueuesFor returns the queues for a message. The slice is valid until the next call.
func (e *Effects) QueuesFor(known *queue.Routes, out *saga.Outgoing, event bool) ([]*queue.Queue, error) {
	switch {
	case event:
		return known.Kinds[out.Info.Kind], nil
	case out.Info.Intent == saga.Timer && out.To == "":
		e.only[0] = e.In.To.Queue
		return e.only[:], nil
	}
	q, err := known.Command(out.Info.Kind, out.To)
	e.only[0] = q
	return e.only[:], err // an error: the routes changed since the step, and the batch starts over
}

// cancelledTimeouts returns the ids of timeouts that steps of this batch cancelled or moved, or whose saga they
// completed.
func (e *Effects) cancelledTimeouts() map[saga.ID]bool {
	var gone map[saga.ID]bool
	for _, m := range e.In.Messages {
		for _, c := range m.Step.Gone {
			if gone == nil {
				gone = map[saga.ID]bool{}
			}
			gone[c.ID] = true
		}
	}
	return gone
}

// queueAgain queues the messages that are written back.
func (e *Effects) queueAgain(pipeline *pgx.Batch) {
	rows := queue.NewReturns()
	for _, m := range e.In.Messages {
		if m.Fate != message.FateAgain || m.InLane {
			continue
		}
		rows.Add(&m.Row, m.Delay, m.Err)
		if m.Delay > 0 {
			e.NoteWake(e.In.To.Queue, e.In.Clock().Add(m.Delay))
		} else {
			e.NoteWake(e.In.To.Queue, time.Time{})
		}
	}
	rows.Queue(pipeline, e.In.To.Queue.SQL("insert_again"), nil, nil)
}

// queueRecords queues the dead letters and the records of discarded messages.
func (e *Effects) queueRecords(pipeline *pgx.Batch) {
	letters, discarded := e.Records()
	if len(letters) > 0 {
		e.In.To.Letters.QueueLetters(pipeline, letters)
	}
	if len(discarded) > 0 {
		e.In.To.Letters.QueueDiscarded(pipeline, discarded)
	}
}

// Records returns the dead letters, and the records of discarded messages. A message with a run gets no dead letter:
// its run keeps the error.
func (e *Effects) Records() (letters []recoverability.Letter, discarded []recoverability.Discarded) {
	for _, m := range e.In.Messages {
		switch {
		case m.Fate == message.FateDead && m.Firing.Run == nil:
			letters = append(letters, recoverability.Letter{
				Endpoint: e.In.To.Name, MessageID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body,
				Attempts: m.Attempt, Conflicts: m.Conflict, Reason: m.Reason, Error: deadletter.ErrorText(m.Err),
				Sent: m.Sent, FirstFailed: m.FirstFailed,
			})
		case m.Fate == message.FateDropped:
			name, key := m.Instance.Name()
			discarded = append(discarded, recoverability.Discarded{
				Endpoint: e.In.To.Name, MessageID: m.ID, Kind: m.Kind, Saga: name, Key: key, Reason: m.Reason,
			})
		}
	}
	return letters, discarded
}

// queueRemoval queues the deletion of the messages, and then the deletion of cancelled timeouts.
func (e *Effects) queueRemoval(pipeline *pgx.Batch) {
	if e.Ended {
		return
	}
	tids := pg.TIDs()
	due, id := pg.Timestamps(), pg.UUIDs()
	for _, m := range e.In.Messages {
		if m.Fate == message.FateLeft || m.Fate == message.FateMoved {
			continue
		}
		tids.TID(m.TID)
		for _, c := range m.Step.Gone {
			due.Time(c.Due)
			id.UUID(c.ID)
		}
	}
	pipeline.Queue(e.In.To.Queue.SQL("delete"), tids, tids.Len(), e.In.Transaction)
	if id.Len() > 0 {
		pipeline.Queue(e.In.To.Queue.SQL("delete_timeouts"), due, id)
	}
}

// queueEnd ends the transaction. A rehearsal runs all checks of a COMMIT without committing.
func (e *Effects) queueEnd(pipeline *pgx.Batch) {
	if !e.In.Rehearses {
		pipeline.Queue("commit")
		return
	}
	pipeline.Queue("set constraints all immediate")
	pipeline.Queue("rollback")
}

// NoteWake records a queue to wake after the commit.
func (e *Effects) NoteWake(q *queue.Queue, due time.Time) {
	at := slices.IndexFunc(e.wakes, func(w wakeAfter) bool { return w.queue == q })
	if at < 0 {
		e.wakes = append(e.wakes, wakeAfter{queue: q, due: due})
		return
	}
	if w := &e.wakes[at]; due.Before(w.due) {
		w.due = due
	}
}

// Wake wakes the workers that have messages now.
func (e *Effects) Wake(ctx context.Context) {
	for _, w := range e.wakes {
		e.In.To.Notifier.Wake(ctx, w.queue.ID, e.localTime(w.due))
	}
}

// localTime converts a time of the database's clock to this process's clock.
func (e *Effects) localTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return e.In.Begun.Add(t.Sub(e.In.Now))
}

// wakeAfter is a queue that got messages, and when the first of them is due; zero means now.
type wakeAfter struct {
	queue *queue.Queue
	due   time.Time
}

// queuePause queues the pause, in the transaction that puts the message back.
func (e *Effects) queuePause(pipeline *pgx.Batch) {
	e.In.To.Settings.QueuePause(pipeline, e.In.To.Name, deadletter.Storable(e.In.Pausing.Reason),
		func(paused bool) { e.Paused = paused })
}
