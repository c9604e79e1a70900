package outbox

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/saga"
)

// A message that keeps failing says nothing about the other side while it is alone. So after each Stuck failures in a
// row the relay tries the messages behind it, one after another. If one goes through, the other side is well at that
// moment, and the stuck message is tried right behind it. When it has failed so three times, the other side refuses the
// message, and it is a dead letter. An other side that is away, or comes back at any moment, gives no such evidence,
// however long it lasts.
//
// Evidence is void when the other side may have been away: when nothing goes through and a message fails that is not
// suspected, or when one goes through that failed before. Suspected is what has failed right behind a success. So the
// failures of many refused messages do not speak for each other.
//
// A round tries ten messages, and the next round those behind them, while nothing goes through: however many messages
// are refused, and however large they are, what is behind them is reached. After a success, at the end of the queue,
// and behind another stuck message the rounds begin anew, or they would pass over messages that were never tried.
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

// stuck returns the first message that has failed so often that those behind it are probed. through says that something
// went through in this pass: then no probe is needed, and what is left behind it may be of its key.
func (c *carrier) stuck(messages []*message, through bool) *message {
	for _, m := range messages {
		f := c.failures[m.ID]
		if m.fate != fateLeft || m.err == nil || f == nil || f.attempts < c.relay.options.Stuck {
			continue
		}
		if !through && f.refused == 0 && f.attempts%c.relay.options.Stuck != 0 {
			return nil
		}
		return m
	}
	return nil
}

// probe tries those behind m, and after each success m itself.
func (c *carrier) probe(life, ctx context.Context, b *batch, m *message, through bool) {
	if c.probing.of != m.ID {
		c.probing = probing{of: m.ID}
	}
	if through {
		c.confirm(ctx, b, m)
		return
	}
	well, doubt := false, false
	begun, behind := time.Now(), c.behind(ctx, b, m)
	for n, other := range behind {
		if ctx.Err() != nil || life.Err() != nil || time.Since(begun) > forwardFor {
			break
		}
		c.probing.last = other.Position()
		suspected, failed := c.failures.suspects(other.ID), c.failures[other.ID] != nil
		went, _ := c.try(ctx, b, behind[n:n+1])
		switch {
		case went:
			well = true
			if failed {
				c.failures.believeAll()
			}
			if c.confirm(ctx, b, m) {
				return
			}
		case other.fate == fateLeft && !suspected:
			doubt = true
			if len(c.probing.failed) < mostRemembered {
				c.probing.failed = append(c.probing.failed, other.Position())
			}
		}
	}
	switch {
	case well:
		c.probing = probing{of: m.ID}
	case doubt && ctx.Err() == nil:
		c.failures.believeAll()
	}
}

// confirm is called right behind a success. It tries m, and then those that have failed since the rounds began behind
// m, and are not suspected yet. It reports whether the fate of m is known, or nothing more is to be tried.
func (c *carrier) confirm(ctx context.Context, b *batch, m *message) (over bool) {
	if !c.refuses(ctx, b, m) {
		return true
	}
	if f := c.failures[m.ID]; f != nil && f.refused >= stuckRefused {
		c.giveUp(m, "stuck", m.err)
		over = true
	}
	here := map[queue.Position]*message{}
	for _, other := range b.messages {
		here[other.Position()] = other
		if other != m && other.err != nil {
			c.suspect(ctx, b, other)
		}
	}
	failed := c.probing.failed
	c.probing.failed = nil
	for begun := time.Now(); len(failed) > 0 && time.Since(begun) < forwardFor; failed = failed[1:] {
		if other := here[failed[0]]; other != nil {
			c.suspect(ctx, b, other)
		} else {
			c.suspectAt(ctx, b, failed[0])
		}
	}
	return over || ctx.Err() != nil
}

// suspect tries a message that has failed and is not suspected yet.
func (c *carrier) suspect(ctx context.Context, b *batch, m *message) {
	if m.fate == fateLeft && !c.failures.suspects(m.ID) {
		c.refuses(ctx, b, m)
	}
}

// suspectAt is suspect for a message of an earlier pass.
func (c *carrier) suspectAt(ctx context.Context, b *batch, at queue.Position) {
	found, err := c.reader.lookBehind(ctx, at.Before(), 1)
	if err != nil || len(found.messages) == 0 || found.messages[0].Position() != at {
		return
	}
	other := found.messages[0]
	if c.suspect(ctx, b, other); other.fate != fateLeft {
		b.messages, b.beyond = append(b.messages, other), b.beyond+1
	}
}

// refuses tries m, and notes when it fails.
func (c *carrier) refuses(ctx context.Context, b *batch, m *message) bool {
	if m.fate != fateLeft {
		return false
	}
	_, _ = c.try(ctx, b, []*message{m})
	if m.fate != fateLeft || ctx.Err() != nil {
		return false
	}
	if f := c.failures[m.ID]; f != nil {
		f.refused++
	}
	return true
}

// behind returns what the next round tries: messages behind m and those that were tried before, or else, at the end of
// the queue, messages behind m.
func (c *carrier) behind(ctx context.Context, b *batch, m *message) []*message {
	if last := c.probing.last; last.After(m.Position()) {
		if found := c.leftBehind(ctx, b, last); len(found) > 0 {
			return found
		}
	}
	c.probing.failed = nil
	return c.leftBehind(ctx, b, m.Position())
}

// leftBehind returns what is left of the pass behind a position, or else the next messages of the queue.
func (c *carrier) leftBehind(ctx context.Context, b *batch, from queue.Position) (found []*message) {
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
	more, err := c.reader.lookBehind(ctx, from, stuckProbes)
	if err != nil {
		// the next round does
		c.relay.options.Logger.Debug("edda: the messages behind a stuck one were not read", "endpoint", c.relay.name,
			"error", err)
		return nil
	}
	b.messages, b.beyond = append(b.messages, more.messages...), b.beyond+len(more.messages)
	return more.undecided()
}
