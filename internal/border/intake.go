package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/internal/run"
	"github.com/google/uuid"
)

// takeIn measures an intake that reads a backlog over one consumer, in strict order.
func takeIn(ctx context.Context, s settings) error {
	g, err := newGround(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = g.close() }()
	way := way{URL: g.nodes.URL(), Parts: 8, Batches: true}
	if err := way.lay(ctx, g.nodes); err != nil {
		return err
	}
	if err := way.fill(s.backlog); err != nil {
		return err
	}
	arrived, done := atomic.Int64{}, make(chan struct{})
	there, err := newSide(ctx, g.there, bus.Options{Events: func(e bus.Event) {
		if a, ok := e.(bus.Arrivals); ok && arrived.Add(int64(a.Accepted)) == int64(s.backlog) {
			close(done)
		}
	}})
	if err != nil {
		return err
	}
	defer there.pool.Close()
	intake, end, err := way.intake(there, heard, straight)
	if err != nil {
		return err
	}
	defer end()
	if err := intake.Install(ctx); err != nil {
		return err
	}
	group := run.NewGroup(ctx)
	begun := time.Now()
	group.Go(intake.Run)
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		err = errors.New("it did not end in ten minutes")
	case <-ctx.Done():
	}
	took := time.Since(begun)
	group.Stop()
	if err := errors.Join(err, group.Wait(), ctx.Err()); err != nil {
		return err
	}
	fmt.Printf("border: intake over=%s consumers=1 messages=%d rate=%.0f/s\n", way, s.backlog,
		float64(s.backlog)/took.Seconds())
	return nil
}

// fill publishes n messages to the stream.
func (w way) fill(n int) error {
	publisher, end, err := w.publisher()
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
