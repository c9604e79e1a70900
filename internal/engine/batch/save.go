package batch

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// saver saves the instances of a batch.
type saver struct {
	engine  *Engine
	in      *message.Decoder
	loader  *loader
	shared  *sharedTx
	effects *outcome.Effects
	history *outcome.Historian
	writes  []persistence.Write // the next batch reuses its memory
	later   *persistence.Save   // goes with the write of the effects; nil if the instances are saved already
}

func (s *saver) reset() {
	clear(s.writes)
	s.writes, s.later = s.writes[:0], nil
}

// saveInstances saves the instances and finds out which of them won, before anything is written that depends on it.
// It is the first of the two trips of a write: here the messages of an instance that a different process changed can
// still leave the batch. If every instance was locked at load, no other transaction can have changed one, and the
// save goes with the second trip.
//
// Only the first two statements may wait, for starts of the same key and for ids that callers gave, each in one order
// for all batches. From the first update on nothing waits: that is why two batches cannot deadlock.
func (s *saver) saveInstances(ctx context.Context) error {
	save := s.engine.Sagas.NewSave(s.collectWrites())
	ids, senders := s.effects.GivenIDs()
	if len(ids) == 0 && save.Sure() {
		s.later = save
		for _, i := range s.loader.instances {
			i.Settle(true)
		}
		return nil
	}
	var claim *dedup.Claim
	pipeline := &pgx.Batch{}
	s.shared.ownPlanner(pipeline)
	s.effects.QueueRunLocks(pipeline)
	save.QueueStarts(pipeline)
	if len(ids) > 0 {
		claim = s.engine.To.Sent.NewClaim(ids)
		claim.Queue(pipeline)
	}
	save.QueueChanges(pipeline)
	if err := save.Err(); err != nil {
		return err
	}
	if err := s.in.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("save: %w", pgerr.Explain(err))
	}
	s.sortOutConflicts(save)
	return s.effects.SortOutIDs(ids, senders, claim)
}

// collectWrites lists the instances to save. An instance that did not change is checked all the same: its messages
// were decided on its state.
func (s *saver) collectWrites() []persistence.Write {
	s.history.NoteInstances(changeOf)
	writes := s.writes[:0]
	for _, i := range s.loader.instances {
		if !i.Stepped {
			continue
		}
		in, err := i.Session.Instance()
		if err != nil {
			continue // a start that failed: no other transaction could have changed it
		}
		i.Written(len(writes))
		if !in.Originator.Run.IsZero() && i.Ended {
			s.effects.End(i)
		}
		writes = append(writes, persistence.Write{Op: opOf(i), Instance: in, Row: i.Row, Page: s.history.PageID(i)})
	}
	s.writes = writes
	return writes
}

func opOf(i *contention.Instance) persistence.Op {
	fresh := i.Version == 0
	switch {
	case fresh && i.Session.Completed():
		return persistence.StartAndComplete
	case fresh:
		return persistence.Start
	case i.Session.Completed():
		return persistence.Complete
	case i.Session.Changed():
		return persistence.Update
	}
	return persistence.Check
}

// changeOf returns how the write of an instance changes it, for the history.
func changeOf(i *contention.Instance) history.ChangeKind {
	switch op := opOf(i); {
	case op == persistence.StartAndComplete, op == persistence.Start && i.Ended:
		return history.BeganAndEnded
	case op == persistence.Start:
		return history.Began
	case op == persistence.Complete && !i.Ended:
		return history.Unchanged // it ended earlier, and its row is removed now
	case op == persistence.Complete, op == persistence.Update && i.Ended:
		return history.Ended
	case op == persistence.Update:
		return history.Changed
	}
	return history.Unchanged
}

// sortOutConflicts leaves the messages of instances that lost. A message that has lost twice is written back with its
// number of losses, so that they count in all processes; if it has lost too often, the policy decides, as for any
// failure.
func (s *saver) sortOutConflicts(save *persistence.Save) {
	for _, i := range s.loader.instances {
		if i.Write < 0 {
			continue
		}
		if i.Settle(save.Won(i.Write)); !i.Won {
			s.engine.To.Memory.LoseInstance(lockAfter(i.Def) < 0, i.Asked, contention.Handle{ID: i.ID})
		}
	}
	for _, m := range s.in.Messages {
		if m.Fate == message.FateLeft || m.Instance == nil || m.Instance.Write < 0 || m.Instance.Won {
			continue
		}
		s.in.Lose(m, s.engine.Options.MaxConflicts)
	}
}

// write is the second trip: it writes everything that depends on which instances won, in one pipeline with the
// COMMIT.
func (b *batch) write(ctx context.Context) error {
	// one list of routes for all sends and for their check, even if the cache is cleared in between
	known, err := b.engine.To.Routes.Get(ctx, b.in.Conn)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	b.shared.ownPlanner(pipeline)
	if b.shared.hurried {
		pipeline.Queue(ownLockTimeout)
	}
	if b.saver.later != nil {
		b.saver.later.QueueChanges(pipeline)
		if err := b.saver.later.Err(); err != nil {
			return err
		}
	}
	if err := b.engine.Strategy.queue(b, pipeline, known); err != nil {
		return err
	}
	if !b.journal.entered.IsZero() {
		b.effects.QueueAlso(b.journal.queueLeave)
	}
	if err := b.effects.Commit(ctx, pipeline, known); err != nil {
		return err
	}
	b.journal.entered = saga.ID{}
	return nil
}

// ownLockTimeout resets the lock_timeout of handlers that share a transaction: our own statements wait for no lock
// from here on, but Postgres locks a table while it grows, and on a busy disk that is no reason to lose a batch.
const ownLockTimeout = "set local lock_timeout to default"
