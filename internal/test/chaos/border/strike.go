package main

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
)

// storm strikes workers, nodes of the broker and servers of Postgres, one at a time: two nodes of three have to be
// there, and the only one comes back.
type storm struct {
	*lab.Lab
	nodes   nodes.Nodes
	servers []*pgdev.Server
	lease   time.Duration // a worker that is frozen for longer loses what it holds
	stream  string        // every other node that is struck is the leader of it
}

// rage strikes every second or three until the time is over: workers more often than not. What it strikes comes back.
func (s *storm) rage(ctx context.Context) error {
	return s.Crew.Rage(ctx, s.For, time.Second, 3*time.Second,
		lab.Blow{Share: 5, Strike: s.Crew.KillAny},
		lab.Blow{Share: 3, Strike: s.freezeWorker},
		lab.Blow{Share: 2, Strike: s.killNode},
		lab.Blow{Share: 2, Strike: s.freezeNode},
		lab.Blow{Share: 2, Strike: s.crash})
}

// crash ends a server as a crash of its machine does.
func (s *storm) crash(ctx context.Context) error {
	server := s.servers[s.Random.IntN(len(s.servers))]
	if err := server.Restart(ctx, pgdev.Immediate); err != nil {
		return fmt.Errorf("crash Postgres: %w", err)
	}
	return s.Note(ctx, "crash", "of a Postgres")
}

// freezeWorker stops a worker for longer than its lease, and the time in which it has a message in hand. What the
// worker does when it goes on must change nothing.
func (s *storm) freezeWorker(ctx context.Context) error {
	return s.Crew.FreezeAny(ctx, 0, 0, func(*procs.Process) error {
		return s.meanwhile(ctx, s.lease+time.Second, s.lease+3*time.Second)
	})
}

// killNode kills a node and brings it back after a while.
func (s *storm) killNode(ctx context.Context) error {
	node, err := s.pickNode(ctx, "node kill")
	if err != nil {
		return err
	}
	if err := s.nodes.Kill(node); err != nil {
		return err
	}
	if err := s.meanwhile(ctx, 0, 3*time.Second); err != nil {
		return err
	}
	return s.nodes.Restart(ctx, node)
}

// freezeNode stops a node, for so long that the others elect another leader. To all who are connected to it that is a
// network that is cut.
func (s *storm) freezeNode(ctx context.Context) error {
	node, err := s.pickNode(ctx, "node freeze")
	if err != nil {
		return err
	}
	s.nodes.Freeze(node)
	err = s.meanwhile(ctx, 2*time.Second, 12*time.Second)
	if thawErr := s.nodes.Thaw(ctx, node); err == nil {
		err = thawErr
	}
	return err
}

// pickNode picks any node, and every other time the leader of the stream.
func (s *storm) pickNode(ctx context.Context, kind string) (node int, err error) {
	what := ""
	if node = s.Random.IntN(s.nodes.Nodes()); s.Random.IntN(2) == 0 {
		what = ", the leader"
		if node, err = s.nodes.Leader(ctx, s.stream); err != nil {
			return 0, err
		}
	}
	return node, s.Note(ctx, kind, fmt.Sprintf("of node %d%s", node+1, what))
}

// meanwhile waits for a time between two others, and kills a worker in every other of them.
func (s *storm) meanwhile(ctx context.Context, least, most time.Duration) error {
	wait := s.Between(least, most)
	if err := run.Sleep(ctx, wait/2); err != nil {
		return err
	}
	if s.Random.IntN(2) == 0 {
		if err := s.Crew.KillAny(ctx); err != nil {
			return err
		}
	}
	return run.Sleep(ctx, wait/2)
}
