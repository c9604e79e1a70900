package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

const (
	senders  = 24 // as many commits may wait for the disk at once: 1,000/s is kept up to 24 ms each
	lagParts = 32 // each takes one message in the time of a commit there and of a round trip to the broker
	reached  = 0.95
)

// lag sends at a steady rate, and prints how long after its commit each message was committed into the queue of the
// other database, by the commit timestamps of Postgres.
func lag(ctx context.Context, s lab.Settings, over string) (err error) {
	l, err := lab.Open(ctx, s, pgdev.Options{Durable: true,
		Settings: map[string]string{"max_connections": "200", "track_commit_timestamp": "on"}})
	if err != nil {
		return err
	}
	defer l.Close()
	g := &ground{}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.open(ctx, l, over, lagParts, 1); err != nil {
		return err
	}
	if err := g.install(ctx); err != nil {
		return err
	}
	// Each sender has a connection, so that none waits for another one's commit.
	here, err := newSide(ctx, fmt.Sprintf("%s&pool_max_conns=%d", g.Server.DSN(), senders), bus.Options{})
	if err != nil {
		return err
	}
	defer here.pool.Close()
	relay, endRelay, err := here.relay(ctx, g.route, relayName, 16, outbox.RelayOptions{})
	if err != nil {
		return err
	}
	defer endRelay()
	intake, endIntake, err := g.there.intake(ctx, g.route, heard)
	if err != nil {
		return err
	}
	defer endIntake()
	group := run.NewGroup(ctx)
	group.Go(relay.Run)
	group.Go(intake.Run)
	group.Go(func(ctx context.Context) error {
		defer group.Stop()
		if err := send(ctx, here, s.For); err != nil {
			return err
		}
		return g.arrived(ctx)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return g.report(ctx)
}

// send offers the rate, each message in a transaction of its own. A sender that is late makes up for it: a slow commit
// is to be seen in the lag, and not to lower the rate.
func send(ctx context.Context, here *side, lasting time.Duration) error {
	begun := time.Now()
	every := time.Duration(senders) * time.Second / time.Duration(flags.rate)
	group := run.NewGroup(ctx)
	for sender := range senders {
		group.Go(func(ctx context.Context) error {
			due := begun.Add(every * time.Duration(sender) / senders)
			for n := int64(0); time.Since(begun) < lasting; n++ {
				if err := run.Sleep(ctx, time.Until(due)); err != nil {
					return err
				}
				due = due.Add(every)
				// So many keys that no part has many more of them than another.
				if err := sendOne(ctx, here, said{Key: fmt.Sprint(sender, ".", n%50), N: n, Pad: pad}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// sendOne sends a message, and tells it in the same transaction.
func sendOne(ctx context.Context, here *side, m said) error {
	return here.bus.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Get("tell"), m.Key, m.N); err != nil {
			return err
		}
		_, err := here.bus.SendTx(ctx, tx, m, saga.To(relayName), saga.WithHeader(brokers.KeyHeader, m.Key))
		return err
	})
}

func (g *ground) arrived(ctx context.Context) error {
	return lab.Await(ctx, time.Minute, "the arrival of every message", func() (bool, error) {
		var told, entered int64
		err := errors.Join(g.Pool.QueryRow(ctx, sql.Get("told")).Scan(&told),
			g.there.pool.QueryRow(ctx, sql.Get("entered")).Scan(&entered))
		return told == entered, err
	})
}

// report prints the rate at which messages arrived beside their lag: where it is lower than what was asked for, the lag
// is that of another rate.
func (g *ground) report(ctx context.Context) error {
	rows, err := g.Pool.Query(ctx, sql.Get("committed_here"))
	if err != nil {
		return err
	}
	defer rows.Close()
	if _, err := g.there.pool.CopyFrom(ctx, pgx.Identifier{"chaos", "committed"}, []string{"key", "n", "at"},
		rows); err != nil {
		return fmt.Errorf("copy the moments of the commits: %w", err)
	}
	var messages int
	var rate float64
	var p50, p99, most time.Duration
	if err := g.there.pool.QueryRow(ctx, sql.Get("lags")).Scan(&messages, &rate, &p50, &p99, &most); err != nil {
		return fmt.Errorf("compare the moments of the commits: %w", err)
	}
	g.Fact("rate", fmt.Sprintf("%d/s", flags.rate))
	g.Fact("arrived", fmt.Sprintf("%.0f/s", rate))
	g.Fact("messages", messages)
	g.Fact("parts", lagParts)
	for _, f := range []struct {
		name string
		lag  time.Duration
	}{{"p50", p50}, {"p99", p99}, {"max", most}} {
		g.Fact(f.name, fmt.Sprintf("%.1fms", f.lag.Seconds()*1000))
	}
	if rate < reached*float64(flags.rate) {
		g.Fact("WARNING", fmt.Sprintf("not_the_lag_at_%d/s", flags.rate))
	}
	return g.Conclude(ctx, "over="+g.route.Over)
}
