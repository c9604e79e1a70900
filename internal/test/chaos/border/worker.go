package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// lease is how long a relay stays with a process that does not renew it.
const lease = 2 * time.Second

// worker is a process on one side of the border. Here it tells messages and relays, there it takes them in and handles
// them.
type worker struct {
	Here  bool
	Route brokers.Route
}

// work is the life of a worker process.
func work(ctx context.Context, lw *lab.Worker) error {
	w := worker{}
	if err := lw.Read(&w); err != nil {
		return err
	}
	s, err := newSide(ctx, lw.DSN, bus.Options{})
	if err != nil {
		return err
	}
	defer s.pool.Close()
	if w.Here {
		return w.here(ctx, lw, s)
	}
	intake, end, err := s.intake(ctx, w.Route, "") // events: they go to every subscriber
	if err != nil {
		return err
	}
	defer end()
	listener, err := newListener(s)
	if err != nil {
		return err
	}
	return persist(ctx, s, intake, listener)
}

func (w worker) here(ctx context.Context, lw *lab.Worker, s *side) error {
	o := outbox.RelayOptions{Lease: lease, Poll: 200 * time.Millisecond, Holder: lw.Name, MaxRetryDelay: time.Second}
	relay, end, err := s.relay(ctx, w.Route, relayName, 16, o)
	if err != nil {
		return err
	}
	defer end()
	telling, stop := context.WithCancel(ctx)
	defer stop()
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error { return persist(ctx, s, relay) })
	group.Go(func(ctx context.Context) error {
		defer stop()
		select {
		case <-lw.Calm:
		case <-ctx.Done():
		}
		return nil
	})
	for n := range 4 {
		group.Go(func(context.Context) error { tell(telling, s, fmt.Sprint(lw.Name, ".", n)); return nil })
	}
	return group.Wait()
}

// tell sends numbered messages of one key until telling is over. A number whose transaction failed is not told.
func tell(telling context.Context, s *side, key string) {
	for n := int64(0); telling.Err() == nil; n++ {
		m := said{Key: key, N: n}
		_ = s.bus.InTx(telling, func(tx pgx.Tx) error {
			if _, err := tx.Exec(telling, sql.Get("tell"), m.Key, m.N); err != nil {
				return err
			}
			_, err := s.bus.PublishTx(telling, tx, m, saga.WithHeader(brokers.KeyHeader, key))
			return err
		})
		_ = run.Sleep(telling, run.Jitter(10*time.Millisecond)) // its end is the loop's
	}
}

// newListener makes the endpoint there: it notes each message in the transaction that consumes it.
func newListener(s *side) (*bus.Endpoint, error) {
	return bus.NewEndpoint(s.bus, heard, bus.EndpointOptions{Concurrency: 2, Poll: 200 * time.Millisecond},
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m said) error {
			_, err := tx.Exec(ctx, sql.Get("handle"), m.Key, m.N)
			return err
		}))
}

// persist runs them on one host, again when it ends because Postgres was away at a moment when they need it.
func persist(ctx context.Context, s *side, runners ...edda.Runner) error {
	host, err := edda.NewHost(runners...)
	if err == nil {
		lab.Persist(ctx, lab.Log(slog.LevelWarn), host)
	}
	return err
}
