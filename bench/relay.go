package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Relay relays a full queue to a receiver that takes no time, so that only the relay's own work is measured.
const Relay = "relay"

//go:embed relay.sql
var relaySQL string

// outbound is edda's relay.
type outbound struct{}

// tenths are the paces of the last run, in messages per second: when the queue was full of due messages, and when
// nearly all of them had been deleted.
var tenths struct{ first, last float64 }

func init() {
	register("relay", outbound{}, Case{Workload: Relay})
}

func (outbound) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := migrations.Up(ctx, db, migrations.Options{Schema: c.Schema()}); err != nil {
		return err
	}
	o, err := operate.New(db, operate.Options{Schema: c.Schema()})
	if err == nil {
		err = o.Queues().InstallRelay(ctx, "abroad")
	}
	if err == nil {
		_, err = db.Exec(ctx, statements(relaySQL, c.Schema())["fill_relay"], c.N)
	}
	return err
}

// Work relays until all of it was given, and is deleted.
func (outbound) Work(ctx context.Context, w *Worker) error {
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	var given pacer
	deleted := make(chan struct{})
	gone := 0
	b, err := bus.New(pool, bus.Options{Schema: w.Schema(), History: noHistory, Logger: slog.New(slog.DiscardHandler),
		Events: func(e event.Event) {
			if relayed, ok := e.(event.Relayed); ok {
				if gone += relayed.Messages; gone == w.N {
					close(deleted)
				}
			}
		}})
	if err != nil {
		return err
	}
	r, err := bus.NewRelay(b, "abroad", outbox.RelayOptions{}, func(_ context.Context,
		messages []*saga.Delivery) []error {
		given.pass(len(messages), w.N)
		return nil
	})
	if err != nil {
		return err
	}
	err = w.run(ctx, pool, r, func(ctx context.Context, _ int64) error {
		select {
		case <-deleted:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err == nil && given.n != w.N {
		err = fmt.Errorf("%d messages were given, want %d", given.n, w.N)
	}
	tenths.first, tenths.last = given.first, given.last
	return err
}

// pacer measures the pace of the first and the last tenth of the messages that pass.
type pacer struct {
	n           int
	began, late time.Time
	before      int // messages that had passed at late
	first, last float64
}

func (p *pacer) pass(messages, of int) {
	now := time.Now()
	switch {
	case p.n == 0:
		p.began = now
	case p.first == 0 && p.n >= of/10:
		p.first = float64(p.n) / now.Sub(p.began).Seconds()
	case p.late.IsZero() && p.n >= of-of/10:
		p.late, p.before = now, p.n
	}
	if p.n += messages; p.n == of {
		p.last = float64(p.n-messages-p.before) / now.Sub(p.late).Seconds()
	}
}

// Effects counts the messages left in the queue. The harness expects 0.
func (outbound) Effects(ctx context.Context, db *pgxpool.Pool, c Case) (e Effects, err error) {
	return e, db.QueryRow(ctx, statements(relaySQL, c.Schema())["left"]).Scan(&e.Left)
}
