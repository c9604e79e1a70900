package bus

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Careful mode. A message whose handler kills the process comes back with its batch, and kills the next one. Nothing is
// written about messages in hand as long as all goes well. After a death the batches of the queues that the dead process ran
// are careful for ten minutes: before a careful batch runs anything, its messages are entered into a ledger, in a
// transaction of its own, and the batch's transaction strikes them out. What stands there although we have the message in hand
// was in a batch whose process died. That is one of many, so it is a suspect, and no more: it is handled alone, with nothing else in
// hand in the whole process, and only what dies so is guilty. The others go on in full batches.
const (
	carefulFirst = 8   // messages of a careful batch: few suspects when its steps are slow
	carefulMost  = 100 // and when they are fast
	askAgain     = 3   // times, whether a session is dead whose messages came back: its connections end one by one
	askGap       = 10 * time.Millisecond
)

// enter is called before a take, with no transaction open. In a careful process it waits until a suspect that another
// worker has in hand is done with, or, with alone, until nobody has anything. release must be called when the batch is over.
func (s *session) enter(alone bool) (release func()) {
	switch {
	case s.careful.Load() == nil:
		return func() {}
	case alone:
		s.gate.Lock()
		return s.gate.Unlock
	}
	s.gate.RLock()
	return s.gate.RUnlock
}

func (s *session) isCareful(queue int) bool {
	careful := s.careful.Load()
	if careful == nil {
		return false
	}
	_, is := (*careful)[queue]
	return is
}

// before is the place in a queue's order directly before p.
func (p position) before() position {
	for i := len(p.id) - 1; i >= 0; i-- {
		p.id[i]--
		if p.id[i] != 0xff {
			return p
		}
	}
	return position{due: p.due.Add(-time.Microsecond), id: p.id}
}

// carefully changes an order: a suspect that an earlier batch found is taken alone, and careful batches are small at first.
func (w *worker) carefully(o order) order {
	switch {
	case !w.bus.session.isCareful(w.queue.id):
		w.suspects, w.pace = nil, carefulFirst
	case len(w.suspects) > 0:
		o = order{limit: 1, after: w.suspects[0].before(), alone: true}
		w.suspects = w.suspects[1:]
	default:
		o.limit = min(o.limit, w.pace)
	}
	return o
}

// pacing lets careful batches grow as long as they end in time.
func (w *worker) pacing(o order, r report) {
	switch {
	case o.alone:
	case r.late:
		w.pace = max(1, min(w.pace, r.handled))
	case r.taken >= o.limit:
		w.pace = min(2*w.pace, carefulMost)
	}
}

// beCareful enters the batch into the ledger if its queue is in careful mode, and sorts out what was there before.
// A batch that cannot be entered is not run.
func (b *batch) beCareful(ctx context.Context, o order) error {
	if b.touched {
		b.bus.session.lookAround(ctx)
	}
	if !b.bus.session.isCareful(b.queue.id) {
		return nil
	}
	found, err := b.enterLedger(ctx)
	if err == nil && len(found) > 0 {
		err = b.chargeDeaths(ctx, found)
	}
	switch {
	case err != nil:
	case o.alone:
		err = b.face(ctx, found)
	default:
		err = b.setAside(ctx, found)
	}
	if err != nil {
		return fmt.Errorf("crash ledger: %w", err)
	}
	return nil
}

// setAside takes the suspects out of a batch of many; they are left, and the worker comes back for each. The other entries were
// left behind by processes that live.
func (b *batch) setAside(ctx context.Context, found []*entry) error {
	var ours []*entry
	for _, f := range found {
		if f.deaths == 0 {
			ours = append(ours, f)
		} else {
			b.suspects = append(b.suspects, f.position)
		}
	}
	if len(ours) > 0 {
		if err := b.takeOver(ctx, ours, false); err != nil {
			return err
		}
	}
	b.messages = slices.DeleteFunc(b.messages, func(m *message) bool {
		return slices.Contains(b.suspects, position{due: m.due, id: m.id})
	})
	if len(b.messages) == 0 {
		b.abandon(ctx)
	}
	return nil
}

// face is for a batch of one, which is a suspect unless somebody else was faster. One that has died often enough does not run.
// It needs to have died alone at least once: what died among others is as likely a neighbour of the guilty.
func (b *batch) face(ctx context.Context, found []*entry) error {
	if len(found) == 0 {
		return nil
	}
	f := found[0]
	if f.deaths >= b.options.MaxCrashes && f.alone > 0 {
		b.messages[0].convicted = fmt.Errorf("%w: %d processes, of which %d had nothing else in hand", ErrProcessDied, f.deaths, f.alone)
		return nil
	}
	return b.takeOver(ctx, found, true)
}
