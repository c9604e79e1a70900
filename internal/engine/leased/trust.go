package leased

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// A process trusts a claim for nine tenths of a lease, counted from before the last statement known to have extended
// it. Then it gives the claim up and cancels the handler, before the database gives the message to a different
// process. For that it needs neither the database nor a lock whose holder waits for the database: a cause that keeps
// a process from extending its leases must not keep it from giving them up.

const (
	trustMargin   = 10 // a lease is trusted for all but this part of it
	beatsPerLease = 3  // extensions
)

// dbClock estimates the database's clock from the last time that it returned.
type dbClock struct {
	mu           sync.Mutex // guards the fields below
	theirs, ours time.Time  // the database's time in a statement, and our time when that was sent
}

// note records the database's time, read by a statement that was sent at ours.
func (c *dbClock) note(theirs, ours time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.theirs, c.ours = theirs, ours
}

// at returns an upper bound of the database's clock at a time of ours.
func (c *dbClock) at(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.theirs.Add(now.Sub(c.ours))
}

// distrust gives up claims that this process cannot trust any more, until ctx ends.
func (c *claims) distrust(ctx context.Context) {
	for run.Wait(ctx, time.Until(c.expire(time.Now())), c.sooner) != run.Ended {
	}
}

// expire gives up the claims whose lease may be over at now, and returns when to check again. A message that a finish
// has in hand stays: its handler has returned, and the finish decides by the row whether the claim is in force.
func (c *claims) expire(now time.Time) (next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = now.Add(c.terms.trustedFor())
	for m := range c.held {
		if m.moving {
			continue
		}
		if until := c.trusted(m); !now.Before(until) {
			c.loseNow(m)
		} else if until.Before(c.watched) {
			c.watched = until
		}
	}
	return c.watched
}

// watch makes distrust check earlier, if m cannot be trusted until the next check. The caller holds mu.
func (c *claims) watch(m *claimed) {
	if _, ours := c.held[m]; ours && c.trusted(m).Before(c.watched) {
		c.sooner.Send()
	}
}

// trusted returns the time until which the claim and its lane are certainly ours: the database counts from a later
// moment than we do. The caller holds mu.
func (c *claims) trusted(m *claimed) time.Time { return c.sure(m).Add(c.terms.trustedFor()) }

// sure returns the moment before the last statement that extended both the claim and its lane. The caller holds mu.
func (c *claims) sure(m *claimed) time.Time {
	if n := c.lanes[m.key]; n != nil && n.renewed.Before(m.renewed) {
		return n.renewed
	}
	return m.renewed
}

// keepStill keeps extensions away from the rows of these claims until release is called, after waiting for the
// extension in flight. So a statement finds each row where its claim says.
func (c *claims) keepStill(all []*claimed) (release func()) {
	c.still.Lock()
	defer c.still.Unlock()
	c.setMoving(all, true)
	return func() { c.setMoving(all, false) }
}

func (c *claims) setMoving(all []*claimed, moving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range all {
		if m.moving = moving; !moving {
			c.watch(m)
		}
	}
}
