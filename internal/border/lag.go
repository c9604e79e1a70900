package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/border/brokers"
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
	if err := lay(ctx, g); err != nil {
		return err
	}
	w := &watch{committed: map[string]time.Time{}}
	relay, intake, hang, err := w.way(g, here, there)
	if err != nil {
		return err
	}
	defer hang()
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

// lay makes the stream of the parts, on all nodes, and a consumer for each part.
func lay(ctx context.Context, g *ground) error {
	o := cluster.StreamOptions{Subjects: []string{topic + ".*"}, Replicas: g.nodes.Nodes()}
	if err := g.nodes.CreateStream(ctx, stream, o); err != nil {
		return err
	}
	for _, subject := range brokers.Subjects(topic, parts) {
		o := cluster.ConsumerOptions{Subject: subject, MaxPending: 1, AckWait: ackWait, Push: true}
		if err := g.nodes.CreateConsumer(ctx, stream, brokers.Consumer(reader, subject), o); err != nil {
			return err
		}
	}
	return nil
}

// ackWait is how long a part stands still when the process that has its message in hand dies.
const ackWait = 2 * time.Second

// newRelay is the relay of either phase, and its publisher.
func newRelay(here *side, url string, o bus.RelayOptions) (*bus.Relay, message.Publisher, error) {
	publisher, err := brokers.NewJetStreamPublisher(url,
		brokers.JetStreamOptions{Parts: parts, Key: brokers.ByMetadata(keyHeader), AckWait: 2 * time.Second}, nil)
	if err != nil {
		return nil, nil, err
	}
	o.Permanent = brokers.Unfit
	relay, err := watermill.NewRelay(here.bus, relayName, publisher, watermill.RelayOptions{
		RelayOptions: o, Topic: topic, Parallel: 16, Key: func(d *saga.Delivery) string { return d.Info.Header(keyHeader) },
	}, said{}.Kind())
	return relay, publisher, err
}

func newIntake(there *side, s message.Subscriber, endpoint string) (*watermill.Intake, error) {
	return watermill.NewIntake(there.bus, topic, brokers.AllOf(s, brokers.Subjects(topic, parts)...), watermill.IntakeOptions{
		Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler),
	})
}

// watch knows when each message was committed here, and when there.
type watch struct {
	mu        sync.Mutex // guards what follows
	committed map[string]time.Time
	lags      []time.Duration
	sent      int
}

// way makes the relay and the intake. hang closes what is the broker's.
func (w *watch) way(g *ground, here, there *side) (relay *bus.Relay, intake *watermill.Intake, hang func(), err error) {
	relay, publisher, err := newRelay(here, g.nodes.URL(), bus.RelayOptions{})
	if err != nil {
		return nil, nil, nil, err
	}
	subscriber, err := brokers.NewJetStreamSubscriber(g.nodes.URL(), brokers.ConsumerOf{Stream: stream, Name: reader, AckWait: ackWait}, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	intake, err = newIntake(there, watched{subscriber, w}, heard)
	return relay, intake, func() { _ = publisher.Close(); _ = subscriber.Close() }, err
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
