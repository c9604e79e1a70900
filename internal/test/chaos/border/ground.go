package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/border/nodes"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/outbox"
	"github.com/jackc/pgx/v5/pgxpool"
)

// said is the message that crosses. Its key is in a header too, where the publisher finds it.
type said struct {
	Key string
	N   int64
	Pad string
}

func (said) Kind() string { return "border.said" }

const (
	relayName = "other.side" // the queue here whose messages cross
	heard     = "heard"      // the endpoint there
	topic     = "border"
)

//go:embed border.sql
var sqlText string

var sql = lab.SQL(sqlText)

// ground is what a scenario stands on: a Postgres with the databases here (the lab's) and there, and a broker.
type ground struct {
	*lab.Lab
	route    brokers.Route
	nodes    nodes.Nodes
	there    *side
	thereDSN string
}

// overEach runs a scenario over each of the ways that the flags name.
func overEach(do func(ctx context.Context, s lab.Settings, over string) error) func(context.Context,
	lab.Settings) error {
	return func(ctx context.Context, s lab.Settings) (outcome error) {
		for _, over := range flags.over {
			err := do(ctx, s, over)
			if err != nil && !errors.Is(err, lab.ErrBroken) {
				return fmt.Errorf("over %s: %w", over, err)
			}
			outcome = errors.Join(outcome, err)
		}
		return outcome
	}
}

// open makes the database there and starts a broker, so that no part works with what another left.
func (g *ground) open(ctx context.Context, l *lab.Lab, over string, parts, count int) (err error) {
	g.Lab = l
	if _, err := l.Pool.Exec(ctx, "CREATE DATABASE there"); err != nil {
		return fmt.Errorf("create the database there: %w", err)
	}
	at, err := url.Parse(l.Server.DSN())
	if err != nil {
		return err
	}
	at.Path = "/there"
	g.thereDSN = at.String()
	pool, err := lab.Prepare(ctx, g.thereDSN, sql)
	if err != nil {
		return err
	}
	pool.Close()
	if g.there, err = newSide(ctx, g.thereDSN, bus.Options{}); err != nil {
		return err
	}
	g.route = brokers.Route{Over: over, Topic: topic, Parts: parts}
	g.nodes, err = g.route.Start(ctx, count)
	return err
}

// here is the lab's own database.
func (g *ground) here() *side { return &side{pool: g.Pool, bus: g.Bus} }

func (g *ground) close() error {
	if g.there != nil {
		g.there.pool.Close()
	}
	if g.nodes != nil {
		return g.nodes.Stop()
	}
	return nil
}

// side is a bus in one of the databases.
type side struct {
	pool *pgxpool.Pool
	bus  *bus.Bus
}

func newSide(ctx context.Context, dsn string, o bus.Options) (*side, error) {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	o.Logger = slog.New(slog.DiscardHandler)
	b, err := bus.New(pool, o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &side{pool: pool, bus: b}, nil
}

// relay makes a relay out of a queue here. The caller calls end after it.
func (s *side) relay(ctx context.Context, r brokers.Route, name string, parallel int, o outbox.RelayOptions) (
	relay *outbox.Relay, end func(), err error) {
	publisher, end, err := r.Way().Publisher(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := r.Relay(parallel)
	all.Lease, all.Poll, all.Holder, all.MaxRetryDelay = o.Lease, o.Poll, o.Holder, o.MaxRetryDelay
	relay, err = watermill.NewRelay(s.bus, name, publisher, all, said{}.Kind())
	return relay, end, err
}

// intake makes an intake into an endpoint; "" is all that subscribe. The caller calls end after it.
func (s *side) intake(ctx context.Context, r brokers.Route, endpoint string) (intake *watermill.Intake, end func(),
	err error) {
	var subscriber message.Subscriber
	if subscriber, end, err = r.Way().Subscriber(ctx); err != nil {
		return nil, nil, err
	}
	o := watermill.IntakeOptions{Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler)}
	intake, err = watermill.NewIntake(s.bus, r.Topic, subscriber, o)
	return intake, end, err
}
