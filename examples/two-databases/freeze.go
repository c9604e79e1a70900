package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// Whatever is frozen keeps its connections, and answers nothing on them: a machine that pages, or a network that is
// cut. It loses what it had for a time, and what it does when it goes on must change nothing.

// frozenLonger is how long a worker is frozen at least: longer than the lease of a relay, so that another takes over.
const frozenLonger = 4 * time.Second

// freezeWorker stops a worker. It may be killed meanwhile.
func (c *chaos) freezeWorker(ctx context.Context, random *rand.Rand) error {
	p := c.crew.Any(random)
	if p == nil {
		return nil
	}
	p.Freeze()
	c.freezes++
	begun := time.Now()
	// whatever ends it, it is let go
	_ = run.Sleep(ctx, frozenLonger+time.Duration(random.Int64N(int64(6*time.Second))))
	p.Thaw()
	c.tell("worker %s was frozen, and goes on after %.1f s", p.Name, time.Since(begun).Seconds())
	return nil
}

// freezeNode stops a node of the broker, for so long that the others elect another leader.
func (c *chaos) freezeNode(ctx context.Context, random *rand.Rand) error {
	node := random.IntN(c.broker.Nodes())
	c.broker.Freeze(node)
	c.nodeFreezes++
	begun := time.Now()
	err := run.Sleep(ctx, 2*time.Second+time.Duration(random.Int64N(int64(8*time.Second))))
	if thawErr := c.broker.Thaw(ctx, node); err == nil {
		err = thawErr
	}
	c.tell("node %d of the broker was frozen, and goes on after %.1f s", node+1, time.Since(begun).Seconds())
	return err
}
