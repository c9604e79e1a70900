package bus

import (
	"context"
	"fmt"
	"math"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5"
)

// saver saves the instances of a batch.
type saver struct {
	in      *decoder
	loader  *loader
	shared  *sharedTx
	effects *effects
	writes  []persistence.Write // its memory serves the next batch
}

func (s *saver) reset() {
	clear(s.writes)
	s.writes = s.writes[:0]
}

// saveInstances saves the instances and finds out which of them won, before anything is written that depends on it.
// It is the first of the two trips of a write: an instance that somebody else changed takes its messages out of the
// batch here, where that is still possible. When every instance was locked at load nobody can have changed one; the
// save then goes with the second trip.
//
// Only the first two statements may wait, for starts of the same key and for ids that callers gave, each in
// one order for all. From the first update on nothing waits: that is why two batches cannot deadlock.
func (s *saver) saveInstances(ctx context.Context) error {
	save := s.in.ep.bus.sagas.NewSave(s.collectWrites())
	ids, senders := s.effects.givenIDs()
	if len(ids) == 0 && save.Sure() {
		s.effects.save = save
		return nil
	}
	claim := s.in.ep.bus.sent.NewClaim(ids)
	pipeline := &pgx.Batch{}
	s.shared.ownPlanner(pipeline)
	s.queueRunLocks(pipeline)
	save.QueueStarts(pipeline)
	claim.Queue(pipeline)
	save.QueueChanges(pipeline)
	if err := save.Err(); err != nil {
		return err
	}
	if err := s.in.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("save: %w", pg.Explain(err))
	}
	s.sortOutConflicts(save)
	return s.effects.sortOutIDs(ids, senders, claim)
}

// collectWrites lists what is to be saved. An instance that did not change is checked all the same: its
// messages were decided on what it was.
func (s *saver) collectWrites() []persistence.Write {
	writes := s.writes[:0]
	for _, i := range s.loader.instances {
		if !i.stepped {
			continue
		}
		in, err := i.session.Instance()
		if err != nil {
			continue // a start that failed: there is nothing that anybody could have changed
		}
		i.write = len(writes)
		if !in.Originator.Run.IsZero() && i.session.Completed() {
			s.effects.ending = append(s.effects.ending, i)
		}
		writes = append(writes, persistence.Write{Op: opOf(i), Instance: in, Row: i.row})
	}
	s.writes = writes
	return writes
}

func opOf(i *instance) persistence.Op {
	fresh := i.version == 0
	switch {
	case fresh && i.session.Completed():
		return persistence.StartAndComplete
	case fresh:
		return persistence.Start
	case i.session.Completed():
		return persistence.Complete
	case i.session.Changed():
		return persistence.Update
	}
	return persistence.Check
}

// sortOutConflicts leaves the messages of instances that lost. One that has lost twice is written back with its
// losses, so that they count for all processes; one that has lost too often enters the policy like any failure.
func (s *saver) sortOutConflicts(save *persistence.Save) {
	for _, i := range s.loader.instances {
		if i.write < 0 {
			continue
		}
		if i.won = save.Won(i.write); !i.won {
			s.in.ep.memory.loseInstance(i.asked, handle{id: i.id})
		}
	}
	for _, m := range s.in.messages {
		if m.fate == fateLeft || m.instance == nil || m.instance.write < 0 || m.instance.won {
			continue
		}
		m.conflicted = true
		m.Attempt, m.FirstFailed = m.taken.attempt, m.taken.firstFailed // what it decided on was not so
		m.leave()
		losses := s.in.ep.memory.loseMessage(m.ID)
		if losses < lockAfter {
			continue
		}
		m.Conflict = min(m.Conflict+losses, math.MaxInt32)
		if m.Conflict <= s.in.ep.options.MaxConflicts {
			m.putBack(0, ErrConflict)
		} else {
			s.in.lose(m)
		}
	}
}
