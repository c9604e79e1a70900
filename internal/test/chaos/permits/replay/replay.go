package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// replay runs the log, or continues its run.
func replay(ctx context.Context, db *database, l *eventLog, lasting time.Duration) error {
	if err := db.prepare(ctx, lasting); err != nil {
		return err
	}
	p := &player{database: db, events: l.Events}
	if err := p.install(ctx); err != nil {
		return err
	}
	begun, now, err := db.readRun(ctx, l)
	if err != nil {
		return err
	}
	p.pace, p.ahead = begun, time.Until(now)
	return errors.Join(p.run(ctx), context.Cause(ctx))
}

// player publishes the events, each at its moment, while the endpoints handle them.
type player struct {
	*database
	events    []event
	pace      pace
	ahead     time.Duration // of the database's clock before ours
	bus       *bus.Bus
	endpoints []edda.Runner
}

// install makes the endpoint of the saga and that of the records, with their queues. It comes before the first event,
// which would find no subscriber otherwise.
func (p *player) install(ctx context.Context) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if p.bus, err = bus.New(p.pool, bus.Options{Schema: engine, Logger: log}); err != nil {
		return err
	}
	for name, parts := range map[string][]bus.Part{
		"cases":   {bus.Saga(define(&p.pace))},
		"records": {bus.HandleTx(p.filed), bus.HandleTx(p.overdue)},
	} {
		o := bus.EndpointOptions{Concurrency: 2, Drain: 5 * time.Second}
		o.MaxCrashes = math.MaxInt32 // processes are killed at random: no message is to blame
		e, err := bus.NewEndpoint(p.bus, name, o, parts...)
		if err != nil {
			return err
		}
		if err := e.Install(ctx); err != nil {
			return err
		}
		p.endpoints = append(p.endpoints, e)
	}
	return nil
}

// run returns when every event and every deadline has passed and all queues are empty.
func (p *player) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	host, err := edda.NewHost(append(p.endpoints, edda.RunnerFunc(func(ctx context.Context) error {
		defer stop()
		if err := p.publishAll(ctx); err != nil {
			return err
		}
		return p.quiet(ctx)
	}))...)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

// sleep waits for d, or for the end of ctx, which is no error of the run.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const (
	feedStep = 20 * time.Millisecond // what is due within it goes together
	feedMost = 200                   // events in one transaction
)

// publishAll returns when the last event is committed.
func (p *player) publishAll(ctx context.Context) error {
	for left := p.events; len(left) > 0; {
		now := time.Now().Add(p.ahead)
		n := 0
		for n < min(len(left), feedMost) && !p.pace.at(left[n].At).After(now) {
			n++
		}
		if n == 0 {
			if err := sleep(ctx, max(feedStep, min(time.Second, p.pace.at(left[0].At).Sub(now)))); err != nil {
				return err
			}
			continue
		}
		if err := p.publish(ctx, left[:n]); err != nil {
			return fmt.Errorf("publish events: %w", err)
		}
		left = left[n:]
	}
	return nil
}

// publish writes the events in one transaction. An event that an earlier process of this run has published is known by
// its id, and is not written again.
func (p *player) publish(ctx context.Context, events []event) error {
	return p.bus.InTx(ctx, func(tx pgx.Tx) error {
		for _, e := range events {
			sent, err := p.bus.PublishTx(ctx, tx, e.message(), saga.WithID(e.id()))
			if err != nil {
				return err
			}
			if sent.Copies == 0 && !sent.Duplicate {
				return fmt.Errorf("line %d of the log: no endpoint subscribes to %s", e.Line, e.message().Kind())
			}
		}
		return nil
	})
}

// quiet returns when all queues are empty, of timers too. What is left after a minute without any change is found by
// the check.
func (p *player) quiet(ctx context.Context) error {
	last, changed := -1, time.Now()
	for time.Since(changed) < time.Minute {
		waiting := 0
		if err := p.pool.QueryRow(ctx, "SELECT waiting()").Scan(&waiting); err != nil {
			return fmt.Errorf("count the waiting messages: %w", err)
		}
		if waiting == 0 {
			return nil
		}
		if waiting != last {
			last, changed = waiting, time.Now()
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
