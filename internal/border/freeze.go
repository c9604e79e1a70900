package main

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// A worker that is frozen loses what it had for a time: its lease, its messages in hand. What it does when it goes on,
// as somebody whom the others have buried, must change nothing. A node that is frozen is a network that is cut, for all
// who are connected to it.

// freezeWorker stops a worker for longer than its lease, and the time in which it has a message in hand. Another may be
// killed meanwhile, or the frozen one.
func (s *storm) freezeWorker(ctx context.Context) error {
	s.freezes++
	m := s.members[s.random.IntN(len(s.members))]
	say("freeze " + m.Name)
	m.Freeze()
	defer func() {
		say("thaw " + m.Name)
		m.Thaw() // it may be dead by now
	}()
	return s.meanwhile(ctx, lease+time.Second, 5*time.Second)
}

// freezeNode stops a node for longer than the others wait for it before they elect another leader.
func (s *storm) freezeNode(ctx context.Context) error {
	s.nodeFreezes++
	node, err := s.pickNode(ctx, &s.leaderFreezes)
	if err != nil {
		return err
	}
	say(fmt.Sprint("freeze node ", node))
	s.nodes.Freeze(node)
	err = s.meanwhile(ctx, 2*time.Second, 12*time.Second)
	say(fmt.Sprint("thaw node ", node))
	if thawErr := s.nodes.Thaw(ctx, node); err == nil {
		err = thawErr
	}
	return err
}

// meanwhile waits for a time between two others, and kills a worker in every other of them.
func (s *storm) meanwhile(ctx context.Context, least, most time.Duration) error {
	wait := least + time.Duration(s.random.Int64N(int64(most-least)))
	before := wait / 2
	if err := run.Sleep(ctx, before); err != nil {
		return err
	}
	if s.random.IntN(2) == 0 {
		if err := s.killWorker(); err != nil {
			return err
		}
	}
	return run.Sleep(ctx, wait-before)
}
