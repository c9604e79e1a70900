package batch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// Quarantine. A message whose handler kills the process comes back with its batch, and kills the next process. As
// long as no process dies, nothing is written about messages in hand. After a death the queues that the dead process
// ran are in quarantine for ten minutes: before a batch in quarantine calls a handler, its messages are entered into
// a journal and committed, and the batch's own transaction removes the entries. If a message that we have in hand has
// an entry, it was in a batch whose process died. It is one message of many, so it is only a suspect: it is handled
// alone, with nothing else in hand in the whole process, and is guilty only if the process dies then. The other
// messages continue in full batches.
const (
	quarantineFirst = 8   // messages of a batch in quarantine: few suspects if its steps are slow
	quarantineMost  = 250 // and if they are fast
	askAgain        = 3   // checks whether a session is dead whose messages came back: its connections end one by one
	askGap          = 10 * time.Millisecond
)

// small changes an order: a suspect that an earlier batch found is taken alone, and the first batches in quarantine
// are small.
func (w *worker) small(o order) order {
	switch {
	case !w.engine.Session.InQuarantine(w.engine.To.Queue.ID):
		w.suspects, w.portion = nil, quarantineFirst
	case len(w.suspects) > 0:
		o = order{limit: 1, after: w.suspects[0].Before(), alone: true}
		w.suspects = w.suspects[1:]
	default:
		o.limit = min(o.limit, w.portion)
	}
	return o
}

// pacing lets batches in quarantine grow as long as they end in time.
func (w *worker) pacing(o order, r report) {
	switch {
	case o.alone:
	case r.late:
		w.portion = max(1, min(w.portion, r.Handled))
	case r.Taken >= o.limit:
		w.portion = min(2*w.portion, quarantineMost)
	}
}

// journal enters batches of queues in quarantine into the in-flight journal.
type journal struct {
	engine   *Engine
	in       *message.Decoder
	taker    *taker
	entered  saga.ID          // the row of the batch
	suspects []queue.Position // that were removed from the batch
}

// quarantine enters the batch into the journal if its queue is in quarantine, and sorts out the suspects. A batch
// that cannot be entered does not run.
func (j *journal) quarantine(ctx context.Context, o order) error {
	if !j.engine.Strategy.handles() {
		return nil // no handler runs in it
	}
	if j.taker.touched {
		j.engine.Session.LookAround(ctx)
	}
	if !j.engine.Session.InQuarantine(j.engine.To.Queue.ID) {
		return nil
	}
	if len(j.in.Messages) > quarantineMost { // the death was noticed after the take
		j.in.CutAt(quarantineMost)
	}
	found, err := j.enter(ctx, o.alone)
	if err != nil {
		return fmt.Errorf("in-flight journal: %w", err)
	}
	switch {
	case len(j.in.Messages) == 0, len(found) == 0:
	case o.alone:
		j.face(found[0])
	default:
		j.setAside(found)
	}
	return nil
}

// setAside removes the suspects from a batch of many: they stay in the queue, and the worker takes each alone later.
// The journal keeps them with the batch, which adds nothing to the deaths that count against them.
func (j *journal) setAside(found []suspect) {
	if j.engine.Fence != nil {
		j.stopBefore(found)
		return
	}
	for _, f := range found {
		j.suspects = append(j.suspects, f.Position)
	}
	j.in.Keep(func(m *message.Message) bool { return !slices.Contains(j.suspects, m.Position()) })
}

// stopBefore is setAside for a partition, whose messages are handled in their order: the batch ends before the first
// suspect. If that is the first message, the worker takes it alone later.
func (j *journal) stopBefore(found []suspect) {
	first := slices.IndexFunc(j.in.Messages, func(m *message.Message) bool {
		return slices.ContainsFunc(found, func(f suspect) bool { return f.ID == m.ID && f.Due.Equal(m.Due) })
	})
	switch {
	case first == 0:
		j.suspects = append(j.suspects, j.in.Messages[0].Position())
		j.in.Keep(func(*message.Message) bool { return false })
	case first > 0:
		j.in.CutAt(first)
	}
}

// face decides about a suspect that is alone. A guilty one does not run.
func (j *journal) face(f suspect) {
	m := j.in.Messages[0]
	var guilty error
	if f.Guilty(j.engine.Options.MaxCrashes) {
		guilty = fmt.Errorf("%w: %d processes died, %d of them with no other message", message.ErrProcessDied,
			1+f.Counted, f.Alone)
	}
	m.Suspect(guilty)
}

// FewestCrashes is the number of deaths that makes a message a dead letter: the first one, one in company, and one
// with nothing else in hand.
const FewestCrashes = 3
