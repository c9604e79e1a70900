package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

const (
	senders  = 24 // as many commits may wait for the disk at once: 1,000/s is kept up to 24 ms each
	lagParts = 32 // each takes one message in the time of a commit there and of a round trip to the broker
	reached  = 0.95
)

// lag measures it over each way.
func lag(ctx context.Context, s lab.Settings) error {
	for _, way := range ways(lagParts) {
		if err := lagOver(ctx, s, way); err != nil {
			return fmt.Errorf("over %s: %w", way, err)
		}
	}
	return nil
}

// lagOver sends at a steady rate and measures how long after its commit each message is in the queue of the other
// database.
func lagOver(ctx context.Context, s lab.Settings, way way) error {
	g, err := newGroundOver(ctx, s, &way, 1)
	if err != nil {
		return err
	}
	defer func() { _ = g.close() }()
	dsn, err := withConnections(g.Server.DSN(), senders)
	if err != nil {
		return err
	}
	here, err := newSide(ctx, dsn, bus.Options{})
	if err != nil {
		return err
	}
	defer here.pool.Close()
	there := g.there
	w := &watch{committed: map[string]time.Time{}}
	relay, endRelay, err := way.relay(ctx, here, bus.RelayOptions{})
	if err != nil {
		return err
	}
	defer endRelay()
	intake, endIntake, err := way.intake(ctx, there, heard,
		func(s message.Subscriber) message.Subscriber { return watched{s, w} })
	if err != nil {
		return err
	}
	defer endIntake()
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
	w.report(s, way)
	return nil
}

// withConnections gives each sender a connection, so that none waits for another one's commit.
func withConnections(dsn string, n int) (string, error) {
	at, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	query := at.Query()
	query.Set("pool_max_conns", strconv.Itoa(n))
	at.RawQuery = query.Encode()
	return at.String(), nil
}

// watch knows when each message was committed here, and when there.
type watch struct {
	begun time.Time // set by send

	mu        sync.Mutex           // guards what follows
	committed map[string]time.Time // here, and not yet there
	sent      int
	lags      []time.Duration
	last      time.Time // when the last one arrived
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

// arrived counts a message once: one whose ack came late is given again.
func (w *watch) arrived(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.committed[id]; ok {
		delete(w.committed, id)
		w.last = time.Now()
		w.lags = append(w.lags, w.last.Sub(at))
	}
}

// send offers the rate, each message in a transaction of its own. A sender that is late makes up for it: a slow commit
// is to be seen in the lag, and not to lower the rate.
func (w *watch) send(ctx context.Context, here *side, s lab.Settings) error {
	w.begun = time.Now()
	every := time.Duration(senders) * time.Second / time.Duration(flags.rate)
	group := run.NewGroup(ctx)
	for sender := range senders {
		group.Go(func(ctx context.Context) error {
			due := w.begun.Add(every * time.Duration(sender) / senders)
			for n := int64(0); time.Since(w.begun) < s.For; n++ {
				if err := run.Sleep(ctx, time.Until(due)); err != nil {
					return err
				}
				due = due.Add(every)
				// So many keys that no part has many more of them than another.
				if err := w.sendOne(ctx, here, said{Key: fmt.Sprint(sender, ".", n%50), N: n, Pad: pad}); err != nil {
					return err
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
	return lab.Await(ctx, time.Minute, "the arrival of every message", func() (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.committed) == 0, nil
	})
}

// report prints the rate at which messages arrived beside their lag: where it is lower than what was asked for, the lag
// is that of another rate.
func (w *watch) report(s lab.Settings, over way) {
	slices.Sort(w.lags)
	at := func(percent int) float64 {
		return float64(w.lags[min(len(w.lags)-1, len(w.lags)*percent/100)].Microseconds()) / 1000
	}
	arrived := float64(len(w.lags)) / w.last.Sub(w.begun).Seconds()
	_, _ = fmt.Fprintf(
		s.Out,
		"lag over=%s rate=%d/s sent=%.0f/s arrived=%.0f/s messages=%d parts=%d p50=%.1fms p99=%.1fms "+
			"max=%.1fms (one commit here included)\n",
		over,
		flags.rate,
		float64(w.sent)/s.For.Seconds(),
		arrived,
		w.sent,
		lagParts,
		at(50),
		at(99),
		at(100),
	)
	if arrived < reached*float64(flags.rate) {
		_, _ = fmt.Fprintf(s.Out, "lag WARNING: %.0f/s of %d/s were reached, so this is not the lag at %[2]d/s\n",
			arrived, flags.rate)
	}
}
