package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// feed publishes the events of the log, each at its moment.
type feed struct {
	bus       *bus.Bus
	events    []event
	pace      pace
	ahead     time.Duration // of the database's clock before ours
	published atomic.Int64
}

const (
	feedStep = 20 * time.Millisecond // what is due within it goes together
	feedMost = 200                   // events in one transaction
)

// run returns when the last event is committed.
func (f *feed) run(ctx context.Context) error {
	for left := f.events; len(left) > 0; {
		now := time.Now().Add(f.ahead)
		n := 0
		for n < min(len(left), feedMost) && !f.pace.at(left[n].At).After(now) {
			n++
		}
		if n == 0 {
			if err := run.Sleep(ctx, max(feedStep, f.pace.at(left[0].At).Sub(now))); err != nil {
				return err
			}
			continue
		}
		if err := f.publish(ctx, left[:n]); err != nil {
			return fmt.Errorf("publish events: %w", err)
		}
		f.published.Add(int64(n))
		left = left[n:]
	}
	return nil
}

// publish writes the events in one transaction. What an earlier process of this run has published is known by its id,
// and not written again.
func (f *feed) publish(ctx context.Context, events []event) error {
	return f.bus.InTx(ctx, func(tx pgx.Tx) error {
		for _, e := range events {
			sent, err := f.bus.PublishTx(ctx, tx, e.message(), saga.WithID(e.id()))
			if err != nil {
				return err
			}
			if sent.Copies == 0 && !sent.Duplicate {
				return fmt.Errorf("line %d of the log: nobody subscribes to %s", e.Line, e.message().Kind())
			}
		}
		return nil
	})
}
