package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
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

// speed relays a backlog to a stream, again and again with other settings, and then takes one in.
func speed(ctx context.Context, s lab.Settings) error {
	backlog := flags.backlog
	if s.Quick {
		backlog = max(1, backlog/10)
	}
	g, err := newGround(ctx, s, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = g.close() }()
	for _, memory := range []bool{true, false} {
		for _, parallel := range []int{0, 1, 8, 64} {
			c := course{parallel: parallel, memory: memory, n: backlog}
			if parallel == 1 { // one message after another takes long and shows it soon
				c.n = max(1, backlog/10)
			}
			if parallel == 64 && !memory {
				c.profile = flags.profile
			}
			if err := c.measure(ctx, g); err != nil {
				return fmt.Errorf("speed with %s, storage %s: %w", c.publisher(), c.storage(), err)
			}
		}
	}
	return takeIn(ctx, g, backlog)
}

// measure fills the queue, runs a relay until it is empty, and prints what came out.
func (c course) measure(ctx context.Context, g *ground) error {
	name := fmt.Sprintf("speed_%s_%s", c.storage(), c.publisher())
	if err := g.nodes.CreateStream(ctx, name,
		cluster.StreamOptions{Memory: c.memory, Batches: c.parallel == 0}); err != nil {
		return err
	}
	relayed, done := atomic.Int64{}, make(chan struct{})
	here, err := newSide(ctx, g.Server.DSN(), bus.Options{Events: func(e bus.Event) {
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
	g.Fact("storage", c.storage())
	g.Fact("publisher", c.publisher())
	g.Fact("messages", c.n)
	g.Fact("rate", fmt.Sprintf("%.0f/s", float64(c.n)/took.Seconds()))
	g.Fact("cpu_us_per_message", fmt.Sprintf("%.1f", float64(ours.Microseconds())/float64(c.n)))
	g.Expect(held == uint64(c.n), "lost", "the stream holds %d of %d messages", held, c.n)
	defer g.Forget()
	return g.Conclude(ctx, "", sql, "lost")
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
	before := processorTime()
	took, err = runUntil(ctx, relay.Run, done)
	return took, processorTime() - before, err
}

// runUntil runs something until done is closed, and returns how long that took.
func runUntil(
	ctx context.Context,
	runner func(context.Context) error,
	done <-chan struct{},
) (took time.Duration, err error) {
	group := run.NewGroup(ctx)
	begun := time.Now()
	group.Go(runner)
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		err = errors.New("it did not end in ten minutes")
	case <-ctx.Done():
	}
	took = time.Since(begun)
	group.Stop()
	return took, errors.Join(err, group.Wait(), ctx.Err())
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

// takeIn measures an intake that reads a backlog over one consumer, in strict order.
func takeIn(ctx context.Context, g *ground, n int) error {
	way := way{URL: g.nodes.URL(), Parts: 8, Batches: true}
	if err := way.lay(ctx, g.nodes); err != nil {
		return err
	}
	if err := way.fill(ctx, n); err != nil {
		return err
	}
	arrived, done := atomic.Int64{}, make(chan struct{})
	there, err := newSide(ctx, g.thereDSN, bus.Options{Events: func(e bus.Event) {
		if a, ok := e.(bus.Ingested); ok && arrived.Add(int64(a.Accepted)) == int64(n) {
			close(done)
		}
	}})
	if err != nil {
		return err
	}
	defer there.pool.Close()
	intake, end, err := way.intake(ctx, there, heard, straight)
	if err != nil {
		return err
	}
	defer end()
	if err := intake.Install(ctx); err != nil {
		return err
	}
	took, err := runUntil(ctx, intake.Run, done)
	if err != nil {
		return err
	}
	g.Fact("consumers", 1)
	g.Fact("messages", n)
	g.Fact("rate", fmt.Sprintf("%.0f/s", float64(n)/took.Seconds()))
	return g.Conclude(ctx, "intake over="+way.String(), sql)
}

// fill publishes n messages to the stream.
func (w way) fill(ctx context.Context, n int) error {
	publisher, end, err := w.publisher(ctx)
	if err != nil {
		return err
	}
	defer end()
	const atOnce = 1000
	for from := 0; from < n; from += atOnce {
		batch := make([]*message.Message, 0, atOnce)
		for i := from; i < min(n, from+atOnce); i++ {
			body, err := json.Marshal(said{Key: strconv.Itoa(i), N: int64(i), Pad: pad})
			if err != nil {
				return err
			}
			m := message.NewMessage(uuid.Must(uuid.NewV7()).String(), body)
			m.Metadata = message.Metadata{watermill.KindKey: said{}.Kind(), keyHeader: strconv.Itoa(i)}
			batch = append(batch, m)
		}
		if err := publisher.Publish(topic, batch...); err != nil {
			return fmt.Errorf("fill the stream: %w", err)
		}
	}
	return nil
}
