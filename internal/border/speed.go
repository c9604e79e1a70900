package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/border/brokers"
	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// course is one measurement of the speed.
type course struct {
	parallel int // 0: in batches, by package jetstream
	memory   bool
	n        int
	profile  string
}

func (c course) storage() string {
	if c.memory {
		return "memory"
	}
	return "file"
}

func (c course) publisher() string {
	if c.parallel == 0 {
		return "batches"
	}
	return fmt.Sprint("parallel_", c.parallel)
}

// speed relays a backlog to a stream, again and again with other settings.
func speed(ctx context.Context, s settings) error {
	g, err := newGround(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = g.close() }()
	for _, memory := range []bool{true, false} {
		for _, parallel := range []int{0, 1, 8, 64} {
			c := course{parallel: parallel, memory: memory, n: s.backlog}
			if parallel == 1 { // one message after another takes long and shows it soon
				c.n = max(1, s.backlog/10)
			}
			if parallel == 64 && !memory {
				c.profile = s.profile
			}
			if err := c.measure(ctx, g); err != nil {
				return fmt.Errorf("speed with %s, storage %s: %w", c.publisher(), c.storage(), err)
			}
		}
	}
	return nil
}

// measure fills the queue, runs a relay until it is empty, and prints what came out.
func (c course) measure(ctx context.Context, g *ground) error {
	name := fmt.Sprintf("speed_%s_%s", c.storage(), c.publisher())
	if err := g.nodes.CreateStream(ctx, name,
		cluster.StreamOptions{Memory: c.memory, Batches: c.parallel == 0}); err != nil {
		return err
	}
	relayed, done := atomic.Int64{}, make(chan struct{})
	here, err := newSide(ctx, g.here, bus.Options{Events: func(e bus.Event) {
		if r, ok := e.(bus.Relayed); ok && relayed.Add(int64(r.Messages)) == int64(c.n) {
			close(done)
		}
	}})
	if err != nil {
		return err
	}
	defer here.pool.Close()
	publisher, end, err := c.connect(g.nodes.URL())
	if err != nil {
		return err
	}
	defer end()
	relay, err := watermill.NewRelay(here.bus, strings.ReplaceAll(name, "_", "."), publisher,
		watermill.RelayOptions{Topic: name, Parallel: c.parallel})
	if err != nil {
		return err
	}
	if err := relay.Install(ctx); err != nil {
		return err
	}
	if err := fill(ctx, here, relay.Name(), c.n); err != nil {
		return err
	}
	took, ours, err := c.time(ctx, relay, done)
	if err != nil {
		return err
	}
	held, _, err := g.nodes.Messages(ctx, name)
	if err != nil {
		return err
	}
	fmt.Printf("border: speed storage=%s publisher=%s messages=%d rate=%.0f/s cpu_us_per_message=%.1f "+
		"in_the_stream=%d\n",
		c.storage(), c.publisher(), c.n, float64(c.n)/took.Seconds(), float64(ours.Microseconds())/float64(c.n), held)
	if held != uint64(c.n) {
		return fmt.Errorf("the stream holds %d of %d messages: %w", held, c.n, errBroken)
	}
	return nil
}

// connect makes the publisher of package jetstream, or of watermill-nats, and what ends it.
func (c course) connect(url string) (message.Publisher, func(), error) {
	if c.parallel > 0 {
		publisher, err := brokers.NewJetStreamPublisher(url, brokers.JetStreamOptions{}, nil)
		return publisher, func() { _ = publisher.Close() }, err
	}
	conn, err := jetstream.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	publisher, err := jetstream.NewPublisher(conn, jetstream.PublisherOptions{})
	return publisher, conn.Close, err
}

// time runs the relay until done. ours is the processor time of this process: neither Postgres nor the node are in it.
func (c course) time(ctx context.Context, relay *bus.Relay, done <-chan struct{}) (took, ours time.Duration,
	err error) {
	if c.profile != "" {
		file, err := os.Create(c.profile)
		if err != nil {
			return 0, 0, err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return 0, 0, err
		}
		defer pprof.StopCPUProfile()
	}
	group := run.NewGroup(ctx)
	begun, before := time.Now(), processorTime()
	group.Go(relay.Run)
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		err = errors.New("it did not end in ten minutes")
	case <-ctx.Done():
	}
	took, ours = time.Since(begun), processorTime()-before
	group.Stop()
	return took, ours, errors.Join(err, group.Wait(), ctx.Err())
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pad makes the body about 200 bytes long.
var pad = strings.Repeat("x", 150)

// fill sends n messages, each a conversation of its own.
func fill(ctx context.Context, s *side, to string, n int) error {
	const atOnce = 1000
	for from := 0; from < n; from += atOnce {
		batch := make([]saga.Posting, 0, atOnce)
		for i := from; i < min(n, from+atOnce); i++ {
			batch = append(batch, saga.Posting{Message: said{Key: fmt.Sprint(i), N: int64(i), Pad: pad},
				Options: []saga.SendOption{saga.To(to)}})
		}
		err := s.bus.InTx(ctx, func(tx pgx.Tx) error {
			_, err := s.bus.SendAllTx(ctx, tx, batch)
			return err
		})
		if err != nil {
			return fmt.Errorf("fill the queue: %w", err)
		}
	}
	return nil
}
