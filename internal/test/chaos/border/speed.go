package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// speed relays a backlog to a stream, again and again over other ways, and then takes one in.
func speed(ctx context.Context, s lab.Settings) (err error) {
	l, err := lab.Open(ctx, s, pgdev.Options{Durable: true})
	if err != nil {
		return err
	}
	defer l.Close()
	g := &ground{}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.open(ctx, l, brokers.Batches, 0, 1); err != nil {
		return err
	}
	backlog := flags.backlog
	if s.Quick {
		backlog = max(1, backlog/10)
	}
	if err := g.relayAll(ctx, g.route, 0, backlog); err != nil {
		return err
	}
	for _, parallel := range []int{1, 8, 64} {
		r := brokers.Route{Over: brokers.WatermillNATS, URL: g.route.URL, Topic: fmt.Sprint("parallel_", parallel)}
		if err := r.Way().Lay(ctx, g.nodes); err != nil {
			return err
		}
		n := backlog
		if parallel == 1 { // one message after another takes long and shows it soon
			n = max(1, backlog/10)
		}
		if err := g.relayAll(ctx, r, parallel, n); err != nil {
			return err
		}
	}
	return g.takeIn(ctx, backlog)
}

// relayAll fills a queue, runs a relay until the queue is empty, and prints how fast that was. The processor time is
// that of this process: neither Postgres nor the node are in it.
func (g *ground) relayAll(ctx context.Context, r brokers.Route, parallel, n int) error {
	relayed, done := atomic.Int64{}, make(chan struct{})
	here, err := newSide(ctx, g.Server.DSN(), bus.Options{Events: func(e event.Event) {
		if r, ok := e.(event.Relayed); ok && relayed.Add(int64(r.Messages)) == int64(n) {
			close(done)
		}
	}})
	if err != nil {
		return err
	}
	defer here.pool.Close()
	relay, end, err := here.relay(ctx, r, "to."+strings.ReplaceAll(r.Topic, "_", "."), parallel, outbox.RelayOptions{})
	if err != nil {
		return err
	}
	defer end()
	if err := relay.Install(ctx); err != nil {
		return err
	}
	if err := fill(ctx, here, relay.Name(), n); err != nil {
		return err
	}
	before := processorTime()
	took, err := runUntil(ctx, relay.Run, done)
	if err != nil {
		return err
	}
	used := processorTime() - before
	held, err := r.Way().Unread(ctx, g.nodes)
	if err != nil {
		return err
	}
	g.Fact("messages", n)
	g.Fact("rate", fmt.Sprintf("%.0f/s", float64(n)/took.Seconds()))
	g.Fact("cpu_us_per_message", fmt.Sprintf("%.1f", float64(used.Microseconds())/float64(n)))
	g.Expect(held == uint64(n), "lost", "the stream holds %d of %d messages", held, n)
	defer g.Forget()
	return g.Conclude(ctx, fmt.Sprintf("out over=%s parallel=%d", r.Over, max(1, parallel)))
}

// takeIn measures an intake that reads the backlog of the batches over one consumer, in strict order.
func (g *ground) takeIn(ctx context.Context, n int) error {
	arrived, done := atomic.Int64{}, make(chan struct{})
	there, err := newSide(ctx, g.thereDSN, bus.Options{Events: func(e event.Event) {
		if a, ok := e.(event.Ingested); ok && arrived.Add(int64(a.Accepted)) == int64(n) {
			close(done)
		}
	}})
	if err != nil {
		return err
	}
	defer there.pool.Close()
	intake, end, err := there.intake(ctx, g.route, heard)
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
	g.Fact("messages", n)
	g.Fact("rate", fmt.Sprintf("%.0f/s", float64(n)/took.Seconds()))
	return g.Conclude(ctx, "in over="+g.route.Over)
}

// runUntil runs something until done is closed, and returns how long that took.
func runUntil(ctx context.Context, runner func(context.Context) error, done <-chan struct{}) (took time.Duration,
	err error) {
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

// fill sends n messages, each of a key of its own.
func fill(ctx context.Context, s *side, to string, n int) error {
	const atOnce = 1000
	for from := 0; from < n; from += atOnce {
		batch := make([]saga.Posting, 0, atOnce)
		for i := from; i < min(n, from+atOnce); i++ {
			batch = append(batch, saga.Posting{Message: said{Key: fmt.Sprint(i), N: int64(i), Pad: pad},
				Options: []saga.SendOption{saga.To(to), saga.WithHeader(brokers.KeyHeader, fmt.Sprint(i))}})
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
