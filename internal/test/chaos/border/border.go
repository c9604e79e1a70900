package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/jackc/pgx/v5"
)

// fewParts are few: with watermill-nats each consumer is an election of its own when a node dies.
const fewParts = 8

// border lets workers tell, relay, take in and handle while everything is killed, then lets the rest come through in
// peace, and counts.
func border(ctx context.Context, s lab.Settings, over string) (err error) {
	g := &ground{}
	defer func() { err = errors.Join(err, g.close()) }()
	isHere := func(place int) bool { return place%2 == 0 }
	return s.Try(ctx, lab.Trial{Title: "over=" + over, Server: pgdev.Options{Durable: true}, Places: 4,
		Prepare: func(ctx context.Context, l *lab.Lab) error {
			if err := g.open(ctx, l, over, fewParts, 3); err != nil {
				return err
			}
			return g.install(ctx)
		},
		DSN: func(place int) string {
			if isHere(place) {
				return g.Server.DSN()
			}
			return g.thereDSN
		},
		Task: func(place int) any { return worker{Here: isHere(place), Route: g.route} },
		Break: func(ctx context.Context, l *lab.Lab) error {
			servers := []*pgdev.Server{g.Server}
			storm := &storm{Lab: l, nodes: g.nodes, servers: servers, lease: lease, stream: topic}
			if err := storm.rage(ctx); err != nil {
				return err
			}
			if err := l.Crew.SayCalm(); err != nil {
				return err
			}
			return g.rest(ctx)
		},
		Judge: g.judge})
}

// install makes the queues in the databases, and the witness there.
func (g *ground) install(ctx context.Context) error {
	relay, end, err := g.here().relay(ctx, g.route, relayName, 1, outbox.RelayOptions{})
	if err != nil {
		return err
	}
	defer end()
	listener, err := newListener(g.there)
	if err != nil {
		return err
	}
	if err := errors.Join(relay.Install(ctx), listener.Install(ctx)); err != nil {
		return err
	}
	_, err = g.there.pool.Exec(ctx, sql.Get("watch"), heard)
	return err
}

// rest waits until everything told has come through, and nothing has moved for a second.
func (g *ground) rest(ctx context.Context) error {
	quiet, story, onlyLost := 0, "", false
	err := lab.Await(ctx, 2*time.Minute, "that nothing moves any more", func() (bool, error) {
		here, err := g.Left(ctx)
		if err != nil {
			return false, err
		}
		var there, told, entered int64
		unread, err := g.route.Way().Unread(ctx, g.nodes)
		err = errors.Join(err, g.there.pool.QueryRow(ctx, "SELECT chaos.backlog()").Scan(&there),
			g.Pool.QueryRow(ctx, sql.Get("told")).Scan(&told),
			g.there.pool.QueryRow(ctx, sql.Get("entered")).Scan(&entered))
		story = fmt.Sprintf("%d and %d messages in the queues, %d in the broker", here, there, unread)
		onlyLost = here+there == 0 && unread == 0
		if quiet++; !onlyLost || entered < told { // some brokers do not count the messages in hand
			quiet = 0
		}
		return quiet == 20, err
	})
	if err != nil && !onlyLost { // the checker has the better words for what is lost
		return fmt.Errorf("%s: %w", story, err)
	}
	return ctx.Err()
}

// judge takes what was told here to the ledger there, and compares.
func (g *ground) judge(ctx context.Context, _ *lab.Lab) error {
	rows, err := g.Pool.Query(ctx, "SELECT key, n FROM chaos.told")
	if err != nil {
		return fmt.Errorf("read the table told: %w", err)
	}
	defer rows.Close()
	n, err := g.there.pool.CopyFrom(ctx, pgx.Identifier{"chaos", "told"}, []string{"key", "n"}, rows)
	if err != nil {
		return fmt.Errorf("copy the table told: %w", err)
	}
	g.Fact("told", n)
	g.Expect(n > 0, "nothing told", "no message was told")
	return g.check(ctx)
}

// check compares what was told, what entered and what was handled, by the ledger there.
func (g *ground) check(ctx context.Context) error {
	return errors.Join(g.CheckEffects(ctx, g.there.pool), g.CheckAll(ctx, g.there.pool, "check_entered", "check_dead"),
		g.Check(ctx, g.Pool, "check_dead"))
}
