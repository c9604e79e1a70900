package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// lag sends at a steady rate and measures how long after its commit each message is in the queue of the other database.
func lag(ctx context.Context, s settings) error {
	g, err := newGround(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = g.close() }()
	here, err := newSide(ctx, g.here, bus.Options{})
	if err != nil {
		return err
	}
	defer here.pool.Close()
	there, err := newSide(ctx, g.there, bus.Options{})
	if err != nil {
		return err
	}
	defer there.pool.Close()
	way := way{URL: g.nodes.URL(), Parts: 32}
	if err := way.lay(ctx, g.nodes); err != nil {
		return err
	}
	w := &watch{committed: map[string]time.Time{}}
	relay, publisher, err := way.relay(here, bus.RelayOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = publisher.Close() }()
	intake, subscriber, err := way.intake(there, heard, func(s message.Subscriber) message.Subscriber { return watched{s, w} })
	if err != nil {
		return err
	}
	defer func() { _ = subscriber.Close() }()
	if err := errors.Join(relay.Install(ctx), intake.Install(ctx)); err != nil {
		return err
	}
	group := run.NewGroup(ctx)
	group.Go(relay.Run)
	group.Go(intake.Run)
	err = w.send(ctx, here, s)
	if err == nil {
		err = w.await(ctx)
	}
	group.Stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	w.report(s)
	return nil
}

// watch knows when each message was committed here, and when there.
type watch struct {
	mu        sync.Mutex // guards what follows
	committed map[string]time.Time
	lags      []time.Duration
	sent      int
}

// watched is a subscriber whose messages tell when they are acked: right after the commit of the intake.
type watched struct {
	message.Subscriber
	w *watch
}

func (s watched) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan *message.Message)
	run.Detached(ctx, func(context.Context) {
		defer close(out)
		for m := range in {
			run.Detached(ctx, func(context.Context) {
				select {
				case <-m.Acked():
					s.w.arrived(m.UUID)
				case <-m.Nacked():
				}
			})
			out <- m
		}
	})
	return out, nil
}

func (w *watch) arrived(id string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lags = append(w.lags, now.Sub(w.committed[id]))
}

// send keeps the rate with as many senders as it takes, each message in a transaction of its own.
func (w *watch) send(ctx context.Context, here *side, s settings) error {
	const senders = 8
	end := time.Now().Add(s.lag)
	group := run.NewGroup(ctx)
	for sender := range senders {
		group.Go(func(ctx context.Context) error {
			tick := time.NewTicker(time.Duration(senders) * time.Second / time.Duration(s.rate))
			defer tick.Stop()
			for n := int64(0); time.Now().Before(end); n++ {
				if err := w.sendOne(ctx, here, said{Key: fmt.Sprint(sender, ".", n%20), N: n, Pad: pad}); err != nil {
					return err
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (w *watch) sendOne(ctx context.Context, here *side, m said) error {
	return here.bus.InTx(ctx, func(tx pgx.Tx) error {
		sent, err := here.bus.SendTx(ctx, tx, m, saga.To(relayName), saga.WithHeader(keyHeader, m.Key))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.committed[sent.ID.String()] = time.Now() // a commit ahead, so that the lag has the commit in it
		w.sent++
		return err
	})
}

func (w *watch) await(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); ; {
		w.mu.Lock()
		left := w.sent - len(w.lags)
		w.mu.Unlock()
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d messages have not arrived in a minute: %w", left, errBroken)
		}
		if err := run.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func (w *watch) report(s settings) {
	slices.Sort(w.lags)
	at := func(percent int) float64 {
		return float64(w.lags[min(len(w.lags)-1, len(w.lags)*percent/100)].Microseconds()) / 1000
	}
	fmt.Printf("border: lag rate=%d/s achieved=%.0f/s messages=%d p50=%.1fms p99=%.1fms max=%.1fms (one commit here included)\n",
		s.rate, float64(w.sent)/s.lag.Seconds(), w.sent, at(50), at(99), at(100))
}
