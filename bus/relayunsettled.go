package bus

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/pg"
)

// When a settle fails, the other side has messages that are still in the queue. A relay that took the same turn again
// would give them to it again, as often as the settle fails: for ever, where the settle is too large for a
// statement_timeout. So the loop remembers what became of them, and forwards none of them a second time; and its next
// turns are smaller by half, until one message stands alone. All of it is in memory: whoever relays after this process
// repeats what was not deleted.

// verdict is what a turn has decided about a message.
type verdict struct {
	fate        fate
	err         error
	reason      string
	attempt     int
	firstFailed time.Time
}

// uncopiedAfter is how often in a row the settle of a single message is refused before the copy of it is given up.
const uncopiedAfter = 3

// turnMax is how many messages the next turn takes.
func (r *relaying) turnMax() int { return max(1, int(r.most)) }

// grow makes the turns larger again, after one that went well.
func (r *relaying) grow() {
	r.most, r.alone = min(r.most*growOnGood+0.1, float64(r.options.BatchMax)), 0
}

// shrink makes the turns smaller, after one of so many messages that was lost.
func (r *relaying) shrink(messages int) {
	if messages == 0 { // it was lost before anybody knew how many there are
		messages = r.turnMax()
	}
	r.most = max(1, float64(min(messages, r.turnMax()))*shrinkOnBad)
}

// unsettled remembers what was decided in a turn whose settle failed with err.
func (r *relaying) unsettled(b *relayed, err error) {
	for _, m := range b.messages {
		if m.fate != fateLeft {
			bounded(r.decided)
			r.decided[m.Position()] = verdict{fate: m.fate, err: m.err, reason: m.reason, attempt: m.Attempt,
				firstFailed: m.FirstFailed}
		}
	}
	r.alone++
	if len(b.messages) > 1 || pg.Code(err) == "" || pg.ClassOf(err) != pg.Other &&
		pg.ClassOf(err) != pg.AbortedAlready {
		r.alone = 0 // it may be anybody's fault
	}
}

// recall gives the messages of a turn the fates that an earlier turn could not write down.
func (r *relaying) recall(b *relayed) {
	if len(r.decided) == 0 {
		return
	}
	for _, m := range b.messages {
		if v, known := r.decided[m.Position()]; known && m.fate == fateLeft {
			m.fate, m.err, m.reason, m.Attempt, m.FirstFailed = v.fate, v.err, v.reason, v.attempt, v.firstFailed
		}
	}
}

// forgetDecided forgets what is written down now.
func (r *relaying) forgetDecided(settled []*message) {
	if len(r.decided) == 0 {
		return
	}
	for _, m := range settled {
		delete(r.decided, m.Position())
	}
}

// copies tells whether a copy of m is kept. One whose copy the server refuses, while m stands alone, is given up: it
// would hold up all that is behind it, and the other side has the message.
func (r *relaying) copies(m *message) bool {
	return m.fate == fateDone && r.options.Keep > 0 && r.alone < uncopiedAfter
}

// tellUncopied says that a message went without a copy.
func (r *relaying) tellUncopied(ctx context.Context, settled []*message) {
	if r.options.Keep == 0 || r.alone < uncopiedAfter {
		return
	}
	for _, m := range settled {
		if m.fate == fateDone {
			r.logMessage(ctx, slog.LevelWarn, "edda: no copy of a relayed message is kept", m)
		}
	}
}
