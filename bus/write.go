package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/wire"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// write is the second trip: everything that follows from who won, the deletion of exactly the messages it
// answers for, and the COMMIT, in one pipeline. An error of any statement keeps the COMMIT from happening.
func (b *batch) write(ctx context.Context) error {
	// one list for all that is sent and for its check, whoever forgets it meanwhile
	known, err := b.bus.routes.Get(ctx, b.conn)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	b.ownPlanner(pipeline)
	if b.hurried {
		pipeline.Queue(ownLockTimeout)
	}
	if b.save != nil {
		b.save.QueueChanges(pipeline)
		if err := b.save.Err(); err != nil {
			return err
		}
	}
	events, err := b.queueSends(pipeline, known)
	if err != nil {
		return err
	}
	b.queueAgain(pipeline)
	if err := b.queueMoves(pipeline, known); err != nil {
		return err
	}
	b.queueRecords(pipeline)
	b.queueRemoval(pipeline)
	if b.also != nil {
		b.also(pipeline)
	}
	b.bus.ids.QueueForget(pipeline, b.forget)
	if b.pauses() {
		b.queuePause(pipeline)
	}
	b.queueLedger(pipeline)
	b.queueRunEnds(pipeline)
	if events {
		b.bus.routes.QueueCheck(pipeline, known)
	}
	b.queueEnd(pipeline)
	if err := b.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("write: %w", pg.Explain(err))
	}
	if b.rehearses {
		return errRehearsed
	}
	b.entered = saga.ID{}
	return nil
}

// queueEnd ends the transaction. A rehearsal does all that a COMMIT does but the COMMIT.
func (b *batch) queueEnd(pipeline *pgx.Batch) {
	if !b.rehearses {
		pipeline.Queue("commit")
		return
	}
	pipeline.Queue("set constraints all immediate")
	pipeline.Queue("rollback")
}

// ownLockTimeout takes back what handlers that share a transaction have: nothing of ours is waited for from here on,
// but Postgres locks a table for the moment in which it grows, and on a busy disk that is no reason to lose a batch.
const ownLockTimeout = "set local lock_timeout to default"

// queueSends queues what the steps sent, one statement for each queue, and tells whether events are among it.
func (b *batch) queueSends(pipeline *pgx.Batch, known *queue.Routes) (events bool, err error) {
	gone := b.cancelledTimeouts()
	targets := map[*queue.Queue]*queue.Inserts{}
	order := []*queue.Queue(nil)
	var header []byte
	for _, m := range b.messages {
		for n := range m.out {
			out := &m.out[n]
			if out.Info.Intent == saga.Timer && gone[out.Info.ID] {
				continue // asked for and cancelled in one batch
			}
			event := out.Info.Intent == saga.Event && out.To == ""
			events = events || event
			queues, err := b.queuesFor(known, out, event)
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
				b.noteWake(q, out.Info.Due)
			}
		}
	}
	for _, q := range order {
		targets[q].Queue(pipeline, q)
	}
	return events, nil
}

// queuesFor finds where a message goes. The slice is valid until the next call.
func (b *batch) queuesFor(known *queue.Routes, out *saga.Outgoing, event bool) ([]*queue.Queue, error) {
	switch {
	case event:
		return known.Kinds[out.Info.Kind], nil
	case out.Info.Intent == saga.Timer && out.To == "":
		b.only[0] = b.queue
		return b.only[:], nil
	}
	q, err := known.Command(out.Info.Kind, out.To)
	b.only[0] = q
	return b.only[:], err // an error: the routes changed since the step, and the batch starts over
}

// cancelledTimeouts are the ids of timeouts that steps of this batch cancelled, moved or completed away.
func (b *batch) cancelledTimeouts() map[saga.ID]bool {
	var gone map[saga.ID]bool
	for _, m := range b.messages {
		for _, c := range m.gone {
			if gone == nil {
				gone = map[saga.ID]bool{}
			}
			gone[c.ID] = true
		}
	}
	return gone
}

// queueAgain queues the messages that are written back.
func (b *batch) queueAgain(pipeline *pgx.Batch) {
	rows := queue.NewReturns()
	for _, m := range b.messages {
		if m.fate != again || m.inLane {
			continue
		}
		rows.Add(&m.Row, m.delay)
		if m.delay > 0 {
			b.noteWake(b.queue, b.clock().Add(m.delay))
		} else {
			b.noteWake(b.queue, time.Time{})
		}
	}
	if rows.Len() > 0 {
		pipeline.Queue(b.queue.SQL("insert_again"), rows.Args()...)
	}
}

// queueRecords queues the dead letters and the discarded.
func (b *batch) queueRecords(pipeline *pgx.Batch) {
	var letters []deadletter.Letter
	var discarded []deadletter.Discarded
	for _, m := range b.messages {
		switch m.fate {
		case dead:
			if m.run != nil {
				continue // its run has the error, see runs.go
			}
			letters = append(letters, deadletter.Letter{
				Endpoint: b.name, MessageID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body,
				Attempts: m.Attempt, Conflicts: m.Conflict, Reason: m.reason, Error: errorText(m.err),
				Sent: m.Sent, FirstFailed: m.FirstFailed,
			})
		case dropped:
			name, key := m.instance.name()
			discarded = append(discarded, deadletter.Discarded{
				Endpoint: b.name, MessageID: m.ID, Kind: m.Kind, Saga: name, Key: key, Reason: m.reason,
			})
		}
	}
	b.bus.letters.QueueLetters(pipeline, letters)
	b.bus.letters.QueueDiscarded(pipeline, discarded)
}

// errorText is for errors of handlers too, whose Error may panic: fmt says so then, where a call of ours would end the
// process.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}

// queueRemoval queues the deletion of the messages, and, after it, that of cancelled timeouts.
func (b *batch) queueRemoval(pipeline *pgx.Batch) {
	if b.ended {
		return
	}
	tids := pg.TIDs()
	due, id := pg.Timestamps(), pg.UUIDs()
	for _, m := range b.messages {
		if m.fate == left || m.fate == moved {
			continue
		}
		tids.TID(m.tid)
		for _, c := range m.gone {
			due.Time(c.Due)
			id.UUID(c.ID)
		}
	}
	pipeline.Queue(b.queue.SQL("delete"), tids, tids.Len(), b.xact)
	if id.Len() > 0 {
		pipeline.Queue(b.queue.SQL("delete_timeouts"), due, id)
	}
}

// noteWake remembers whom to wake after the commit.
func (b *batch) noteWake(q *queue.Queue, due time.Time) {
	at := slices.IndexFunc(b.wakes, func(w wakeAfter) bool { return w.queue == q })
	if at < 0 {
		b.wakes = append(b.wakes, wakeAfter{queue: q, due: due})
		return
	}
	if w := &b.wakes[at]; due.Before(w.due) {
		w.due = due
	}
}

// wakeAfter is a queue that got messages, and when the first of them is due; zero is now.
type wakeAfter struct {
	queue *queue.Queue
	due   time.Time
}

// after does what must not happen before the commit: wake-ups, and events.
func (b *batch) after(ctx context.Context) {
	for _, w := range b.wakes {
		b.bus.notifier.Wake(ctx, w.queue.ID, b.localTime(w.due))
	}
	noteChanges(b.bus.watches, b.messages)
	if b.pauses() {
		b.haltAfterPause(ctx)
	}
	b.memory.forget(b.messages)
	b.logEnds(ctx)
	if b.bus.events != nil {
		b.emitEvents()
	}
}

// localTime turns a time of the database's clock into one of this process's.
func (b *batch) localTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return b.begun.Add(t.Sub(b.now))
}

func (b *batch) emitEvents() {
	for _, a := range b.retried {
		if a.of.fate != left { // what was lost to a conflict has not happened
			b.bus.emit(Retried{Endpoint: b.name, Info: shownInfo(a.info), Err: a.err})
		}
	}
	handled := 0
	for _, m := range b.messages {
		name, key := m.instance.name()
		info := shownInfo(m.delivery.Info)
		switch m.fate {
		case done:
			handled++
			from := m.Due
			if m.Sent.After(from) {
				from = m.Sent
			}
			b.bus.emit(Handled{Endpoint: b.name, Info: info, Saga: name, Key: key, Step: m.took,
				Critical: b.clock().Sub(from)})
		case again:
			b.bus.emit(Retried{Endpoint: b.name, Info: info, Err: m.err, Delay: m.delay})
		case dead:
			if m.run != nil {
				b.bus.emit(RunFailed{Endpoint: b.name, Info: info, Err: m.err, Reason: m.reason, Final: m.hopeless()})
				continue
			}
			b.bus.emit(DeadLettered{Endpoint: b.name, Info: info, Err: m.err, Reason: m.reason})
		case dropped:
			b.bus.emit(Discarded{Endpoint: b.name, Info: info, Reason: m.reason})
		}
		if m.conflicted {
			b.bus.emit(Conflicted{Endpoint: b.name, Info: info, Saga: name, Key: key})
		}
	}
	b.bus.emit(BatchDone{Endpoint: b.name, Taken: len(b.messages), Handled: handled,
		Left: len(b.messages) - b.report(nil).handled, Took: time.Since(b.begun)})
}
