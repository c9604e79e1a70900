package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/run"
)

// storm is a fault run.
type storm struct {
	*ground
	way     way
	random  *rand.Rand
	members []*member
	number  int

	kills, nodeKills, leaderKills, crashes int
	freezes, nodeFreezes, leaderFreezes    int
}

// faults runs them over each way.
func faults(ctx context.Context, s settings) error {
	// few parts: with watermill-nats each consumer is an election of its own when a node dies
	for _, way := range ways("", 8) {
		if s.wants(way) {
			if err := faultsOver(ctx, s, way); err != nil {
				return fmt.Errorf("over %s: %w", way, err)
			}
		}
	}
	return nil
}

// faultsOver lets workers tell, relay, take in and handle while everything is killed, then lets the rest come through
// in peace, and counts.
func faultsOver(ctx context.Context, s settings, over way) error {
	fmt.Printf("border: faults over %s for %v, seed %d\n", over, s.faults, s.seed)
	g, err := newGround(ctx, cluster.Options{Nodes: 3})
	if err != nil {
		return err
	}
	over.URL = g.nodes.URL()
	storm := &storm{ground: g, way: over, random: rand.New(rand.NewPCG(s.seed, 1))}
	defer storm.end()
	if err := storm.prepare(ctx); err != nil {
		return err
	}
	for n := range 4 {
		if err := storm.hire(n%2 == 0); err != nil {
			return err
		}
	}
	if err := storm.blow(ctx, s.faults); err != nil {
		return err
	}
	if err := storm.calm(ctx); err != nil {
		return err
	}
	v, err := judge(ctx, g)
	if err != nil {
		return err
	}
	fmt.Printf("border: faults over=%s seconds=%.0f told=%d handled=%d worker_kills=%d worker_freezes=%d "+
		"node_kills=%d of_leaders=%d node_freezes=%d of_leaders=%d postgres_crashes=%d %s\n",
		over, s.faults.Seconds(), v.told, v.handled, storm.kills, storm.freezes, storm.nodeKills, storm.leaderKills,
		storm.nodeFreezes, storm.leaderFreezes, storm.crashes, v)
	if v.broken() {
		return errors.Join(tellStory(ctx, g, v), fmt.Errorf("seed %d: %w", s.seed, errBroken))
	}
	return nil
}

// prepare makes stream, consumers and queues, and the witness there.
func (s *storm) prepare(ctx context.Context) error {
	if err := s.way.lay(ctx, s.nodes); err != nil {
		return err
	}
	both, err := s.sides(ctx)
	if err != nil {
		return err
	}
	defer both.close()
	relay, end, err := s.way.relay(both.here, bus.RelayOptions{})
	if err != nil {
		return err
	}
	defer end()
	if err := relay.Install(ctx); err != nil {
		return err
	}
	listener, err := newListener(both.there)
	if err != nil {
		return err
	}
	if err := listener.Install(ctx); err != nil {
		return err
	}
	_, err = both.there.pool.Exec(ctx, sql("watch"), heard)
	return err
}

func (s *storm) hire(here bool) error {
	s.number++
	w := worker{Name: fmt.Sprint("worker", s.number), Here: here, DSN: s.there, Way: s.way}
	if here {
		w.DSN = s.here
	}
	m, err := w.start()
	if err == nil {
		s.members = append(s.members, m)
	}
	return err
}

// blow strikes every second or three until the time is over.
func (s *storm) blow(ctx context.Context, length time.Duration) error {
	for end := time.Now().Add(length); time.Now().Before(end); {
		if err := run.Sleep(ctx, time.Duration(1000+s.random.IntN(2000))*time.Millisecond); err != nil {
			return err
		}
		if err := s.strike(ctx); err != nil {
			return err
		}
	}
	return nil
}

// strike kills or freezes something: a worker more often than not, else a node, or Postgres. What it strikes comes
// back.
func (s *storm) strike(ctx context.Context) error {
	switch n := s.random.IntN(14); {
	case n < 5:
		return s.killWorker()
	case n < 8:
		return s.freezeWorker(ctx)
	case n < 10:
		return s.killNode(ctx)
	case n < 12:
		return s.freezeNode(ctx)
	}
	s.crashes++
	say("Postgres crashes")
	if err := s.server.Restart(ctx, pgdev.Immediate); err != nil {
		return fmt.Errorf("restart Postgres: %w", err)
	}
	return nil
}

func (s *storm) killWorker() error {
	s.kills++
	at := s.random.IntN(len(s.members))
	m := s.members[at]
	s.members = append(s.members[:at], s.members[at+1:]...)
	m.Kill()
	say("kill " + m.Name)
	return s.hire(m.here)
}

// killNode kills any node, every other time the leader of the stream, and brings it back after a while. Workers may be
// killed meanwhile, other nodes not: two are the majority.
func (s *storm) killNode(ctx context.Context) error {
	s.nodeKills++
	node, err := s.pickNode(ctx, &s.leaderKills)
	if err != nil {
		return err
	}
	say(fmt.Sprint("kill node ", node))
	if err := s.nodes.Kill(node); err != nil {
		return err
	}
	if err := run.Sleep(ctx, time.Duration(s.random.IntN(1500))*time.Millisecond); err != nil {
		return err
	}
	if err := s.killWorker(); err != nil {
		return err
	}
	if err := run.Sleep(ctx, time.Duration(s.random.IntN(1500))*time.Millisecond); err != nil {
		return err
	}
	say(fmt.Sprint("restart node ", node))
	return s.nodes.Restart(ctx, node)
}

// pickNode picks any node, and every other time the leader of the stream, which it counts.
func (s *storm) pickNode(ctx context.Context, leaders *int) (node int, err error) {
	if s.random.IntN(2) == 0 {
		return s.random.IntN(s.nodes.Nodes()), nil
	}
	*leaders++
	return s.nodes.Leader(ctx, stream)
}

// say writes what is done to whom, to be read beside a story.
func say(what string) { fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05.000"), what) }

// calm ends the telling, and waits until everything told has come through.
func (s *storm) calm(ctx context.Context) error {
	for _, m := range s.members {
		if err := m.calm(); err != nil {
			return err
		}
	}
	both, err := s.sides(ctx)
	if err != nil {
		return err
	}
	defer both.close()
	quiet, story := 0, ""
	for end := time.Now().Add(2 * time.Minute); quiet < 10; {
		if time.Now().After(end) {
			return fmt.Errorf("it is not quiet after two minutes: %s: %w", story, errBroken)
		}
		queued, err := waiting(ctx, both)
		unread, natsErr := s.nodes.Unread(ctx, stream)
		if err := errors.Join(err, natsErr); err != nil {
			return err
		}
		story = fmt.Sprintf("%d messages in the queues, %d in the stream", queued, unread)
		if quiet++; queued > 0 || unread > 0 {
			quiet = 0
		}
		if err := run.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func waiting(ctx context.Context, both sides) (n int64, err error) {
	for _, s := range []*side{both.here, both.there} {
		queues, err := s.bus.Queues(ctx)
		if err != nil {
			return 0, err
		}
		for _, q := range queues {
			n += q.Ready + q.Delayed + q.Claimed
		}
	}
	return n, nil
}

func (s *storm) end() {
	for _, m := range s.members {
		m.Kill()
	}
	_ = s.close()
}
