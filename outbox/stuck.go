package outbox

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// If a message keeps failing, either the other side refuses it or the other side is away. So after each Stuck
// failures in a row the relay tries the messages behind it, one by one. If one is accepted, the other side works at
// that moment, and the stuck message is tried right after it. When it has failed so three times, the other side
// refuses it, and it becomes a dead letter. If the other side is away, for however long, or comes back at any moment,
// there is no such evidence.
//
// The evidence does not count if the other side may have been away: if nothing is accepted and an unsuspected message
// fails, or if a message is accepted that failed before. A message is suspected if it has failed right after a
// success. So several refused messages are not evidence against each other.
//
// A round tries ten messages, and while nothing is accepted the next round tries the next ten: so the relay reaches
// the messages behind any number of refused ones. The rounds start again after a success, at the end of the queue,
// and behind a new stuck message, because otherwise they would skip messages that were never tried.
//
// No message overtakes one that has failed less often than Stuck, except messages that failed between a stuck message
// and an accepted one. Those are retried at once.

const (
	stuckProbes  = 10 // messages behind a stuck one that a round tries
	stuckRefused = 3  // failures of a stuck message, each right after a success
)

// probing records how far the messages behind a stuck one have been tried.
type probing struct {
	of     saga.ID          // the stuck message
	last   queue.Position   // the last message that was tried
	failed []queue.Position // since the rounds started behind the stuck message
}

// stuck returns the first message that has failed so often that the messages behind it are probed. through reports
// that a message was accepted in this pass: then no probe is needed, and messages left behind it may have its key.
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

// probe tries the messages behind m, and after each success m itself.
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

// confirm is called right after a success. It tries m, and then the messages that have failed since the rounds started
// behind m and are not suspected yet. It reports whether the fate of m is decided, or nothing more can be tried.
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

// refuses tries m, and reports and counts its failure.
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

// behind returns the messages of the next round: the messages behind m that were not tried yet, or, at the end of the
// queue, the messages behind m again.
func (c *carrier) behind(ctx context.Context, b *batch, m *message) []*message {
	if last := c.probing.last; last.After(m.Position()) {
		if found := c.leftBehind(ctx, b, last); len(found) > 0 {
			return found
		}
	}
	c.probing.failed = nil
	return c.leftBehind(ctx, b, m.Position())
}

// leftBehind returns the undecided messages of the pass after a position, or else the next messages of the queue.
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
		// the next round reads them
		c.relay.options.Logger.Debug("edda: the messages behind a stuck one were not read", "endpoint", c.relay.name,
			"error", err)
		return nil
	}
	b.messages, b.beyond = append(b.messages, more.messages...), b.beyond+len(more.messages)
	return more.undecided()
}
