package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// border goes over each way.
func border(ctx context.Context, s lab.Settings) (outcome error) {
	// few parts: with watermill-nats each consumer is an election of its own when a node dies
	for _, w := range ways(8) {
		err := borderOver(ctx, s, w)
		if err != nil && !errors.Is(err, lab.ErrBroken) {
			return fmt.Errorf("over %s: %w", w, err)
		}
		outcome = errors.Join(outcome, err)
	}
	return outcome
}

// borderOver lets workers tell, relay, take in and handle while everything is killed, then lets the rest come through
// in peace, and counts.
func borderOver(ctx context.Context, s lab.Settings, over way) error {
	g, err := newGroundOver(ctx, s, &over, 3)
	if err != nil {
		return err
	}
	defer func() { _ = g.close() }()
	if err := g.prepare(ctx, over); err != nil {
		return err
	}
	isHere := func(place int) bool { return place%2 == 0 }
	workers := g.Crew(ctx, 4, func(place int) string {
		if isHere(place) {
			return g.Server.DSN()
		}
		return g.thereDSN
	}, func(place int) any { return worker{Here: isHere(place), Way: over} })
	storm := &storm{
		Lab:     g.Lab,
		workers: workers,
		nodes:   g.broker,
		servers: []*pgdev.Server{g.Server},
		lease:   lease,
		stream:  stream,
	}
	err = lab.During(ctx, workers, func(ctx context.Context) error {
		if err := storm.rage(ctx); err != nil {
			return err
		}
		for _, p := range workers.Living() {
			if err := p.WriteLine("calm"); err != nil {
				return err
			}
		}
		return g.rest(ctx)
	})
	if err != nil {
		return err
	}
	return g.judge(ctx, over)
}

// prepare makes the queues in the databases, and the witness there.
func (g *ground) prepare(ctx context.Context, over way) error {
	relay, end, err := over.relay(ctx, g.here(), bus.RelayOptions{})
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
		var there int64
		if err := g.there.pool.QueryRow(ctx, "SELECT chaos.backlog()").Scan(&there); err != nil {
			return false, err
		}
		unread, err := g.broker.Unread(ctx, stream)
		if err != nil {
			return false, err
		}
		missing, err := g.missing(ctx)
		story = fmt.Sprintf("%d and %d messages in the queues, %d in the broker", here, there, unread)
		onlyLost = here+there == 0 && unread == 0
		if quiet++; !onlyLost || missing > 0 {
			quiet = 0
		}
		return quiet == 20, err
	})
	if err != nil && !onlyLost { // the checker has the better words for what is lost
		return fmt.Errorf("%s: %w", story, err)
	}
	return ctx.Err()
}

// missing is how much of what was told has not entered the queue there, where the broker does not say what is in hand.
func (g *ground) missing(ctx context.Context) (int, error) {
	if g.nodes != nil {
		return 0, nil
	}
	var told, entered int
	err := errors.Join(g.Pool.QueryRow(ctx, sql.Get("told")).Scan(&told),
		g.there.pool.QueryRow(ctx, sql.Get("entered")).Scan(&entered))
	return told - entered, err
}

// judge takes what was told here to the ledger there, and compares.
func (g *ground) judge(ctx context.Context, over way) error {
	rows, err := g.Pool.Query(ctx, "SELECT key, n FROM chaos.told")
	if err != nil {
		return fmt.Errorf("read what was told: %w", err)
	}
	told, err := pgx.CollectRows(rows, pgx.RowToStructByPos[one])
	if err != nil {
		return fmt.Errorf("read what was told: %w", err)
	}
	copied := pgx.CopyFromSlice(len(told), func(i int) ([]any, error) { return []any{told[i].Key, told[i].N}, nil })
	if _, err := g.there.pool.CopyFrom(ctx, pgx.Identifier{"chaos", "told"}, []string{"key", "n"}, copied); err != nil {
		return fmt.Errorf("copy what was told: %w", err)
	}
	g.Fact("told", len(told))
	g.Expect(len(told) > 0, "nothing told", "no message was told")
	err = g.check(ctx, "over="+over.String())
	if errors.Is(err, lab.ErrBroken) {
		err = errors.Join(err, g.printStory(ctx))
	}
	return err
}

// check compares what was told, what entered and what was handled, by the ledger there.
func (g *ground) check(ctx context.Context, title string) error {
	err := errors.Join(g.CheckEffects(ctx, g.there.pool),
		g.Check(ctx, g.there.pool, sql.Get("check_entered")),
		g.Check(ctx, g.Pool, sql.Get("check_dead")), g.Check(ctx, g.there.pool, sql.Get("check_dead")))
	if err != nil {
		return err
	}
	return g.Conclude(ctx, title, sql, "lost", "doubled", "disorder", "invented", "dead")
}

// one is a message by which the checker knows it.
type one struct {
	Key string
	N   int64
}

func (m one) String() string { return fmt.Sprintf("%s/%d", m.Key, m.N) }
