package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/dedup"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/wire"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// effects are what one transaction writes about messages that met their fate: sends, retries, dead letters, discards,
// removals and ends of runs. After the COMMIT they wake others, log and emit events.
type effects struct {
	in   *decoder // what they follow from
	only [1]*queue.Queue

	forget []saga.ID         // ids that were claimed for messages which are not sent after all
	wakes  []wakeAfter       // whom to wake after the COMMIT
	save   *persistence.Save // of instances, that goes with this write
	ending []*instance       // that complete, and began with a run
	ended  bool              // the messages are deleted already, see finish.go
	also   func(*pgx.Batch)  // queues what else belongs to the transaction, before the COMMIT
	paused bool              // the endpoint was paused: nobody else held the row
}

// commit queues the effects behind what pipeline has, and ends the transaction: the deletion of exactly the messages
// that it answers for, and the COMMIT. An error of any statement keeps the COMMIT from happening.
func (e *effects) commit(ctx context.Context, pipeline *pgx.Batch, known *queue.Routes) error {
	events, err := e.queueSends(pipeline, known)
	if err != nil {
		return err
	}
	e.queueAgain(pipeline)
	e.queueRecords(pipeline)
	e.queueRemoval(pipeline)
	if e.also != nil {
		e.also(pipeline)
	}
	e.in.ep.bus.sent.QueueForget(pipeline, e.forget)
	if e.in.pauses() {
		e.queuePause(pipeline)
	}
	e.queueRunEnds(pipeline)
	if events {
		e.in.ep.bus.routes.QueueCheck(pipeline, known)
	}
	e.queueEnd(pipeline)
	if err := e.in.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("write: %w", pg.Explain(err))
	}
	if e.in.rehearses {
		return errRehearsed
	}
	return nil
}

// claimIDs claims the ids that handlers gave to what they send, and takes duplicates out of it.
func (e *effects) claimIDs(ctx context.Context) error {
	ids, senders := e.givenIDs()
	if len(ids) == 0 {
		return nil
	}
	claim := e.in.ep.bus.sent.NewClaim(ids)
	pipeline := &pgx.Batch{}
	claim.Queue(pipeline)
	if err := e.in.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("save: %w", pg.Explain(err))
	}
	return e.sortOutIDs(ids, senders, claim)
}

// report says how the transaction ended: err is why it was rolled back.
func (e *effects) report(err error) report {
	r := report{taken: len(e.in.messages), failures: e.in.failures, failure: e.in.failure}
	for _, m := range e.in.messages {
		switch {
		case err != nil:
		case m.fate != fateLeft:
			r.handled++
			if m.fate == fateDone || m.fate == fateDropped && m.err == nil {
				r.done++
			}
		case m.instance != nil && (m.instance.status == busyHere || m.instance.status == busyThere):
			r.busy++
		}
	}
	return r
}

// givenIDs lists the messages to be sent whose ids a handler chose.
func (e *effects) givenIDs() (ids []dedup.Given, senders []*message) {
	for _, m := range e.in.messages {
		for n := range m.step.out {
			if out := &m.step.out[n]; out.GivenID {
				ids = append(ids, dedup.Given{ID: out.Info.ID, Sum: dedup.Sum(out.Info.Kind, out.To, out.Body)})
				senders = append(senders, m)
			}
		}
	}
	return ids, senders
}

// sortOutIDs takes duplicates out of what is sent. An id that was used for another content is the handler's fault; its
// effects are already part of this transaction, so the batch starts over and the step then fails.
//
// When several messages of the batch give one id, the first that has not lost its instance sends it. An id that is
// sent by none is given back.
func (e *effects) sortOutIDs(ids []dedup.Given, senders []*message, claim *dedup.Claim) error {
	claimed := map[saga.ID]bool{} // by this batch, and not sent yet
	for n, m := range senders {
		switch claim.Outcome(n) {
		case dedup.Fresh:
			claimed[ids[n].ID] = true
		case dedup.Conflict:
			if m.step.out == nil {
				continue // it lost its instance, and sends nothing
			}
			err := fmt.Errorf("send with id %s: %w", ids[n].ID, ErrIDConflict)
			e.in.ep.memory.failNext(m.ID, saga.Permanent(err))
			return err
		}
	}
	for _, m := range e.in.messages {
		m.step.out = slices.DeleteFunc(m.step.out, func(out saga.Outgoing) bool {
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

// queueSends queues what the steps sent, one statement for each queue, and reports whether events are among it.
func (e *effects) queueSends(pipeline *pgx.Batch, known *queue.Routes) (events bool, err error) {
	gone := e.cancelledTimeouts()
	targets := map[*queue.Queue]*queue.Inserts{}
	order := []*queue.Queue(nil)
	var header []byte
	for _, m := range e.in.messages {
		for n := range m.step.out {
			out := &m.step.out[n]
			if out.Info.Intent == saga.Timer && gone[out.Info.ID] {
				continue // asked for and cancelled in one batch
			}
			event := out.Info.Intent == saga.Event && out.To == ""
			events = events || event
			queues, err := e.queuesFor(known, out, event)
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
				e.noteWake(q, out.Info.Due)
			}
		}
	}
	for _, q := range order {
		targets[q].Queue(pipeline, q)
	}
	return events, nil
}

// queuesFor finds where a message goes. The slice is valid until the next call.
func (e *effects) queuesFor(known *queue.Routes, out *saga.Outgoing, event bool) ([]*queue.Queue, error) {
	switch {
	case event:
		return known.Kinds[out.Info.Kind], nil
	case out.Info.Intent == saga.Timer && out.To == "":
		e.only[0] = e.in.ep.queue
		return e.only[:], nil
	}
	q, err := known.Command(out.Info.Kind, out.To)
	e.only[0] = q
	return e.only[:], err // an error: the routes changed since the step, and the batch starts over
}

// cancelledTimeouts are the ids of timeouts that steps of this batch cancelled, moved or completed away.
func (e *effects) cancelledTimeouts() map[saga.ID]bool {
	var gone map[saga.ID]bool
	for _, m := range e.in.messages {
		for _, c := range m.step.gone {
			if gone == nil {
				gone = map[saga.ID]bool{}
			}
			gone[c.ID] = true
		}
	}
	return gone
}

// queueAgain queues the messages that are written back.
func (e *effects) queueAgain(pipeline *pgx.Batch) {
	rows := queue.NewReturns()
	for _, m := range e.in.messages {
		if m.fate != fateAgain || m.inLane {
			continue
		}
		rows.Add(&m.Row, m.delay, m.err)
		if m.delay > 0 {
			e.noteWake(e.in.ep.queue, e.in.clock().Add(m.delay))
		} else {
			e.noteWake(e.in.ep.queue, time.Time{})
		}
	}
	if rows.Len() > 0 {
		pipeline.Queue(e.in.ep.queue.SQL("insert_again"), rows.Args()...)
	}
}

// queueRecords queues the dead letters and the discarded.
func (e *effects) queueRecords(pipeline *pgx.Batch) {
	var letters []deadletter.Letter
	var discarded []deadletter.Discarded
	for _, m := range e.in.messages {
		switch m.fate {
		case fateDead:
			if m.firing.run != nil {
				continue // its run has the error, see runs.go
			}
			letters = append(letters, deadletter.Letter{
				Endpoint: e.in.ep.name, MessageID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body,
				Attempts: m.Attempt, Conflicts: m.Conflict, Reason: m.reason, Error: deadletter.ErrorText(m.err),
				Sent: m.Sent, FirstFailed: m.FirstFailed,
			})
		case fateDropped:
			name, key := m.instance.name()
			discarded = append(discarded, deadletter.Discarded{
				Endpoint: e.in.ep.name, MessageID: m.ID, Kind: m.Kind, Saga: name, Key: key, Reason: m.reason,
			})
		}
	}
	e.in.ep.bus.letters.QueueLetters(pipeline, letters)
	e.in.ep.bus.letters.QueueDiscarded(pipeline, discarded)
}

// queueRemoval queues the deletion of the messages, and, after it, that of cancelled timeouts.
func (e *effects) queueRemoval(pipeline *pgx.Batch) {
	if e.ended {
		return
	}
	tids := pg.TIDs()
	due, id := pg.Timestamps(), pg.UUIDs()
	for _, m := range e.in.messages {
		if m.fate == fateLeft || m.fate == fateMoved {
			continue
		}
		tids.TID(m.tid)
		for _, c := range m.step.gone {
			due.Time(c.Due)
			id.UUID(c.ID)
		}
	}
	pipeline.Queue(e.in.ep.queue.SQL("delete"), tids, tids.Len(), e.in.xact)
	if id.Len() > 0 {
		pipeline.Queue(e.in.ep.queue.SQL("delete_timeouts"), due, id)
	}
}

// queueEnd ends the transaction. A rehearsal does all that a COMMIT does but the COMMIT.
func (e *effects) queueEnd(pipeline *pgx.Batch) {
	if !e.in.rehearses {
		pipeline.Queue("commit")
		return
	}
	pipeline.Queue("set constraints all immediate")
	pipeline.Queue("rollback")
}

// noteWake remembers whom to wake after the commit.
func (e *effects) noteWake(q *queue.Queue, due time.Time) {
	at := slices.IndexFunc(e.wakes, func(w wakeAfter) bool { return w.queue == q })
	if at < 0 {
		e.wakes = append(e.wakes, wakeAfter{queue: q, due: due})
		return
	}
	if w := &e.wakes[at]; due.Before(w.due) {
		w.due = due
	}
}

// after does what must not happen before the commit: wake-ups, and events.
func (e *effects) after(ctx context.Context) {
	for _, w := range e.wakes {
		e.in.ep.bus.notifier.Wake(ctx, w.queue.ID, e.localTime(w.due))
	}
	noteChanges(e.in.ep.bus.watches, e.in.messages)
	if e.in.pauses() {
		e.haltAfterPause(ctx)
	}
	e.in.ep.memory.forget(e.in.messages)
	e.logEnds(ctx)
	if e.in.ep.bus.events != nil {
		e.emitEvents()
	}
}

// localTime turns a time of the database's clock into one of this process's.
func (e *effects) localTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return e.in.begun.Add(t.Sub(e.in.now))
}

func (e *effects) emitEvents() {
	for _, a := range e.in.retried {
		if a.of.fate != fateLeft { // what was lost to a conflict has not happened
			e.in.ep.bus.emit(Retried{Endpoint: e.in.ep.name, Info: wire.ShownInfo(a.info), Err: a.err})
		}
	}
	handled := 0
	for _, m := range e.in.messages {
		name, key := m.instance.name()
		info := wire.ShownInfo(m.delivery.Info)
		switch m.fate {
		case fateDone:
			handled++
			from := m.Due
			if m.Sent.After(from) {
				from = m.Sent
			}
			e.in.ep.bus.emit(Handled{Endpoint: e.in.ep.name, Info: info, Saga: name, Key: key, Step: m.step.took,
				Critical: e.in.clock().Sub(from)})
		case fateAgain:
			e.in.ep.bus.emit(Retried{Endpoint: e.in.ep.name, Info: info, Err: m.err, Delay: m.delay})
		case fateDead:
			if m.firing.run != nil {
				e.in.ep.bus.emit(RunFailed{Endpoint: e.in.ep.name, Info: info, Err: m.err, Reason: m.reason,
					Final: m.hopeless()})
				continue
			}
			e.in.ep.bus.emit(DeadLettered{Endpoint: e.in.ep.name, Info: info, Err: m.err, Reason: m.reason})
		case fateDropped:
			e.in.ep.bus.emit(Discarded{Endpoint: e.in.ep.name, Info: info, Reason: m.reason})
		}
		if m.conflicted {
			e.in.ep.bus.emit(Conflicted{Endpoint: e.in.ep.name, Info: info, Saga: name, Key: key})
		}
	}
	e.in.ep.bus.emit(BatchDone{Endpoint: e.in.ep.name, Taken: len(e.in.messages), Handled: handled,
		Left: len(e.in.messages) - e.report(nil).handled, Took: time.Since(e.in.begun)})
}

// wakeAfter is a queue that got messages, and when the first of them is due; zero is now.
type wakeAfter struct {
	queue *queue.Queue
	due   time.Time
}

// queuePause queues the pause. It stands in the transaction that puts the message back.
func (e *effects) queuePause(pipeline *pgx.Batch) {
	e.in.ep.bus.settings.QueuePause(pipeline, e.in.ep.name, deadletter.Storable(e.in.pausing.reason),
		func(paused bool) { e.paused = paused })
}

// haltAfterPause lets this process begin no other batch, without waiting for what it will read, and tells the others.
func (e *effects) haltAfterPause(ctx context.Context) {
	if e.paused {
		if e.in.ep.pump != nil {
			e.in.ep.pump.halt(true)
		}
		e.in.ep.settings.Pause(e.in.pausing.reason, e.in.clock())
	}
	e.in.ep.bus.announceSettings(ctx, e.in.ep.queue.ID)
}
