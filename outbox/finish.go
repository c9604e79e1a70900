package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// finisher deletes the messages with a decided fate, and writes their records, in one transaction that commits only
// while no other process has the lease.
//
// When a finish fails, the other side has messages that are still in the queue. If the relay repeated the pass, it
// would forward them again, as often as the finish fails: for ever, if the finish is too large for a
// statement_timeout. So the finisher remembers their fates, the relay forwards none of them a second time, and the
// next passes are smaller by half, down to a single message. All of this is in memory: a process that takes over
// forwards again the messages that were not deleted.
type finisher struct {
	relay   *Relay
	term    lease.Term
	pool    *pg.Pool
	log     *reporter
	decided map[queue.Position]verdict // fates that are not written yet
	page    *history.Page
	keeps   func() history.Options // returns the present options of the history
	refused int                    // how many times in a row the finish of a single message was refused
}

// verdict is the decision of a pass about a message.
type verdict struct {
	fate        fate
	err         error
	reason      string
	attempt     int
	firstFailed time.Time
}

// uncopiedAfter is how many times in a row the finish of a single message is refused before the message is finished
// without a copy.
const uncopiedAfter = 3

// finish returns the messages that its commit has deleted: an operator may have removed one in the meantime.
func (f *finisher) finish(ctx context.Context, b *batch) (ended []*message, err error) {
	for _, m := range b.messages {
		if m.fate != fateLeft {
			ended = append(ended, m)
		}
	}
	if len(ended) == 0 {
		return nil, nil
	}
	if ended, err = f.write(ctx, ended, b.clock()); err != nil {
		return nil, fmt.Errorf("finish: %w", pgerr.Explain(lease.Fenced(err)))
	}
	for _, m := range ended {
		delete(f.decided, m.Position())
	}
	if f.relay.options.Keep > 0 && f.refused >= uncopiedAfter {
		f.log.uncopied(ctx, ended)
	}
	return ended, nil
}

// write deletes messages. On an error the pool closes the connection, and so ends the transaction, because it closes
// every connection with an open transaction.
func (f *finisher) write(ctx context.Context, messages []*message, now time.Time) (ended []*message, err error) {
	// Relayed messages are deleted even after the drain.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), relayTimeout)
	defer cancel()
	conn, err := f.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	first, plain, gone := &pgx.Batch{}, f.recordsNothing(messages), [][16]byte{}
	first.Queue(queue.Begin)
	queue.Open(first, nil)
	if !plain { // it takes two round trips, and the guard keeps other processes from taking over until it ends
		first.Queue(queue.BoundIdle(), betweenStatements(bytesOf(messages)))
	}
	f.relay.border.Leases.QueueGuard(first, f.term)
	f.queueHistory(first, messages, now)
	f.queueDelete(first, messages, &gone)
	if plain {
		first.Queue("commit")
	}
	if err := conn.SendBatch(ctx, first).Close(); err != nil {
		return nil, err
	}
	if ended = messages; len(gone) < len(messages) {
		ended = slices.DeleteFunc(slices.Clone(messages), func(m *message) bool {
			return !slices.Contains(gone, [16]byte(m.ID))
		})
	}
	if plain {
		return ended, nil
	}
	second := &pgx.Batch{}
	f.queueRecords(second, ended)
	second.Queue("commit")
	return ended, conn.SendBatch(ctx, second).Close()
}

func bytesOf(messages []*message) (sum int) {
	for _, m := range messages {
		sum += len(m.Header) + len(m.Body)
	}
	return sum
}

// queueDelete queues the deletion. gone gets the ids of the messages that were still in the queue.
func (f *finisher) queueDelete(pipeline *pgx.Batch, messages []*message, gone *[][16]byte) {
	tid, due, id := pg.TIDs(), pg.Timestamps(), pg.UUIDs()
	for _, m := range messages {
		tid.TID(m.tid)
		due.Time(m.Due)
		id.UUID(m.ID)
	}
	pipeline.Queue(f.relay.queue.SQL("relay_delete"), tid, due, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			*gone = append(*gone, pg.CurrentRow(rows).UUID(0))
		}
		return rows.Err()
	})
}

// recordsNothing reports whether these messages only have to be deleted, which takes one round trip.
func (f *finisher) recordsNothing(messages []*message) bool {
	return f.relay.options.Keep == 0 && !slices.ContainsFunc(messages, func(m *message) bool {
		return m.fate != fateRelayed || m.run != nil
	})
}

// queueRecords queues the copies, the records of dead and discarded messages, and the ends of runs.
func (f *finisher) queueRecords(pipeline *pgx.Batch, ended []*message) {
	var (
		letters   []recoverability.Letter
		discarded []recoverability.Discarded
		kept      []Kept
		ends      = runs.Ends{Held: []int32{}} // they were checked in another transaction
	)
	name := f.relay.name
	for _, m := range ended {
		if m.run != nil {
			m.reportRun(&ends)
		}
		switch {
		case f.copies(m):
			kept = append(kept, Kept{
				Endpoint: name, ID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body, Sent: m.Sent,
			})
		case m.fate == fateDiscarded:
			discarded = append(discarded, recoverability.Discarded{
				Endpoint: name, MessageID: m.ID, Kind: m.Kind, Reason: m.reason,
			})
		case m.fate == fateDead && m.run == nil:
			letters = append(letters, recoverability.Letter{
				Endpoint: name, MessageID: m.ID, Kind: m.Kind, Header: m.Header, Body: m.Body, Attempts: m.Attempt,
				Reason: m.reason, Error: deadletter.ErrorText(m.err), Sent: m.Sent, FirstFailed: m.FirstFailed,
			})
		}
	}
	b := f.relay.border
	b.Letters.QueueLetters(pipeline, letters)
	b.Letters.QueueDiscarded(pipeline, discarded)
	b.Store.QueueKeep(pipeline, kept)
	b.Runs.QueueEnd(pipeline, &ends)
}

// reportRun adds the outcome of the run of m.
func (m *message) reportRun(ends *runs.Ends) {
	switch {
	case m.fate == fateRelayed:
		ends.Add(m.run, runs.Succeeded, "")
	case m.fate == fateDiscarded:
		ends.Add(m.run, runs.Discarded, m.reason)
	case m.hopeless():
		ends.Add(m.run, runs.Dead, deadletter.ErrorText(m.err))
	default:
		ends.Add(m.run, runs.Failed, deadletter.ErrorText(m.err))
	}
}

// copies reports whether a copy of m is kept. If the server refuses the copy while m is alone, m is finished without
// a copy: m would hold up all messages behind it, and the other side has it.
func (f *finisher) copies(m *message) bool {
	return m.fate == fateRelayed && f.relay.options.Keep > 0 && f.refused < uncopiedAfter
}

// remember records the fates of a pass whose finish failed with err.
func (f *finisher) remember(b *batch, err error) {
	for _, m := range b.messages {
		if m.fate != fateLeft {
			bounded(f.decided)
			f.decided[m.Position()] = verdict{
				fate: m.fate, err: m.err, reason: m.reason, attempt: m.Attempt, firstFailed: m.FirstFailed,
			}
		}
	}
	f.refused++
	class := pgerr.ClassOf(err)
	if len(b.messages) > 1 || pgerr.Code(err) == "" || class != pgerr.Other && class != pgerr.AbortedAlready {
		f.refused = 0 // another message, or the database, may be the cause
	}
}

// recall gives the messages of a pass the fates that an earlier pass could not write.
func (f *finisher) recall(b *batch) {
	if len(f.decided) == 0 {
		return
	}
	for _, m := range b.messages {
		if v, known := f.decided[m.Position()]; known && m.fate == fateLeft {
			m.fate, m.err, m.reason, m.Attempt, m.FirstFailed = v.fate, v.err, v.reason, v.attempt, v.firstFailed
		}
	}
}
