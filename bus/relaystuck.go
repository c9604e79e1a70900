package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// What a message that keeps failing says of the other side: nothing, as long as it is alone. So after each Stuck
// failures in a row the messages behind it are tried one after another. If one goes through, the other side is well at
// that moment, and the stuck one is tried right behind it. When it has failed so three times it is the message that is
// not taken, and it is a dead letter. An other side that is away, or comes back at any moment, gives no such evidence,
// however long it lasts.
//
// Evidence is void when the other side may have been away: when nothing goes through and a message fails that is not
// suspected, or when one goes through that failed before. Suspected is what has failed right behind a success. So the
// failures of many messages that are not taken do not speak for each other.
//
// A round tries ten messages, and the next one those behind them, as long as nothing goes through: however many
// messages are not taken, and however large they are, what is behind them is reached. After a success, at the end of
// the queue, and behind another stuck message the rounds begin anew, or they would pass over messages that nobody has
// tried.
//
// Nothing overtakes a message that has failed less often than Stuck, unless it failed between a stuck one and what went
// through. Those are tried again at once.

const (
	stuckProbes  = 10 // messages behind a stuck one that a round tries
	stuckRefused = 3  // failures of it, each right behind a success
)

// probing is how far the messages behind a stuck one have been tried.
type probing struct {
	of     saga.ID          // the stuck one
	last   queue.Position   // that was tried
	failed []queue.Position // in the rounds since they began behind the stuck one
}

// stuck finds the first message that has failed so often that those behind it are asked. through reports whether
// something went through in this turn: then nobody need be asked, and what is left behind it may be of its key.
func (r *relaying) stuck(messages []*message, through bool) *message {
	for _, m := range messages {
		f := r.failing[m.ID]
		if m.fate != fateLeft || m.err == nil || f == nil || f.attempts < r.options.Stuck {
			continue
		}
		if !through && f.refused == 0 && f.attempts%r.options.Stuck != 0 {
			return nil
		}
		return m
	}
	return nil
}

// tellStuck tries those behind m, and after each success m itself.
func (r *relaying) tellStuck(life, ctx context.Context, b *relayed, m *message, through bool) {
	if r.probing.of != m.ID {
		r.probing = probing{of: m.ID}
	}
	if through {
		r.confirm(ctx, b, m)
		return
	}
	well, doubt := false, false
	begun, behind := time.Now(), r.behind(ctx, b, m)
	for n, other := range behind {
		if ctx.Err() != nil || life.Err() != nil || time.Since(begun) > passFor {
			break
		}
		r.probing.last = other.Position()
		suspected, failed := r.suspects(other), r.failing[other.ID] != nil
		went, _ := r.try(ctx, b, behind[n:n+1])
		switch {
		case went:
			well = true
			if failed {
				r.believeAll()
			}
			if r.confirm(ctx, b, m) {
				return
			}
		case other.fate == fateLeft && !suspected:
			doubt = true
			if len(r.probing.failed) < mostRemember {
				r.probing.failed = append(r.probing.failed, other.Position())
			}
		}
	}
	switch {
	case well:
		r.probing = probing{of: m.ID}
	case doubt && ctx.Err() == nil:
		r.believeAll()
	}
}

// confirm is called right behind a success. It tries m, and then those that have failed since the rounds began behind
// m, and are not suspected yet. It reports whether the fate of m is known, or nothing more is to be asked.
func (r *relaying) confirm(ctx context.Context, b *relayed, m *message) (over bool) {
	if !r.refuses(ctx, b, m) {
		return true
	}
	if f := r.failing[m.ID]; f != nil && f.refused >= stuckRefused {
		r.giveUp(m, "stuck", m.err)
		over = true
	}
	here := map[queue.Position]*message{}
	for _, other := range b.messages {
		here[other.Position()] = other
		if other != m && other.err != nil {
			r.suspect(ctx, b, other)
		}
	}
	failed := r.probing.failed
	r.probing.failed = nil
	for begun := time.Now(); len(failed) > 0 && time.Since(begun) < passFor; failed = failed[1:] {
		if other := here[failed[0]]; other != nil {
			r.suspect(ctx, b, other)
		} else {
			r.suspectAt(ctx, b, failed[0])
		}
	}
	return over || ctx.Err() != nil
}

// suspect tries a message that has failed and is not suspected yet.
func (r *relaying) suspect(ctx context.Context, b *relayed, m *message) {
	if m.fate == fateLeft && !r.suspects(m) {
		r.refuses(ctx, b, m)
	}
}

// suspectAt is suspect for a message of an earlier turn.
func (r *relaying) suspectAt(ctx context.Context, b *relayed, at queue.Position) {
	found, err := r.lookBehind(ctx, at.Before(), 1)
	if err != nil || len(found.messages) == 0 || found.messages[0].Position() != at {
		return
	}
	other := found.messages[0]
	if r.suspect(ctx, b, other); other.fate != fateLeft {
		b.messages, b.beyond = append(b.messages, other), b.beyond+1
	}
}

// refuses tries m, and notes when it fails.
func (r *relaying) refuses(ctx context.Context, b *relayed, m *message) bool {
	if m.fate != fateLeft {
		return false
	}
	_, _ = r.try(ctx, b, []*message{m})
	if m.fate != fateLeft || ctx.Err() != nil {
		return false
	}
	if f := r.failing[m.ID]; f != nil {
		f.refused++
	}
	return true
}

// suspects reports whether m has failed right behind a success.
func (r *relaying) suspects(m *message) bool {
	f := r.failing[m.ID]
	return f != nil && f.refused > 0
}

// believeAll takes back all suspicion.
func (r *relaying) believeAll() {
	for _, f := range r.failing {
		f.refused = 0
	}
}

// behind is what the next round tries: messages that are behind m and those that were tried before, or else, at the end
// of the queue, behind m.
func (r *relaying) behind(ctx context.Context, b *relayed, m *message) []*message {
	if last := r.probing.last; last.After(m.Position()) {
		if found := r.leftBehind(ctx, b, last); len(found) > 0 {
			return found
		}
	}
	r.probing.failed = nil
	return r.leftBehind(ctx, b, m.Position())
}

// leftBehind is what is left of the turn behind a position, or else the next messages of the queue.
func (r *relaying) leftBehind(ctx context.Context, b *relayed, from queue.Position) (found []*message) {
	for _, m := range b.messages {
		if m.Position().After(from) && len(found) < stuckProbes && m.fate == fateLeft {
			found = append(found, m)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, m := range b.messages {
		if last := m.Position(); last.After(from) {
			from = last
		}
	}
	more, err := r.lookBehind(ctx, from, stuckProbes)
	if err != nil {
		// the next round does
		r.options.Logger.Debug("edda: look behind a stuck message", "endpoint", r.name, "error", err)
		return nil
	}
	b.messages, b.beyond = append(b.messages, more.messages...), b.beyond+len(more.messages)
	return more.undecided()
}

// lookBehind reads messages behind a position, and decides what can be decided without the other side.
func (r *relaying) lookBehind(ctx context.Context, from queue.Position, most int) (*relayed, error) {
	limited, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	batch := &relayed{read: time.Now()}
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Open())
	r.queueLook(pipeline, batch, from, most)
	if err := r.pool.SendBatch(limited, pipeline).Close(); err != nil {
		return nil, fmt.Errorf("look: %w", pg.Explain(err))
	}
	if err := r.readLarge(limited, r.pool, batch); err != nil {
		return nil, fmt.Errorf("look: %w", pg.Explain(err))
	}
	r.decode(batch)
	if batch.unread > 0 {
		batch.messages = nil
	}
	if err := r.checkRuns(ctx, batch); err != nil {
		return nil, err
	}
	r.recall(batch)
	return batch, nil
}
