package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
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
	stream    = "border"
	topic     = "border.said"
	keyHeader = "key"
	reader    = "other"
)

//go:embed border.sql
var sqlText string

var sql = lab.SQL(sqlText)

// ground is what a scenario stands on: a Postgres with the databases here (the lab's) and there, and JetStream.
type ground struct {
	*lab.Lab
	nodes    *cluster.Cluster // nil: another broker
	broker   broker           // nodes, or the other
	there    *side
	thereDSN string
}

// newGround starts everything anew, so that no part works with what another left.
func newGround(ctx context.Context, s lab.Settings, o cluster.Options) (*ground, error) {
	g, err := openGround(ctx, s)
	if err != nil {
		return nil, err
	}
	if g.nodes, err = cluster.Start(ctx, o); err != nil {
		return nil, g.closeAfter(err)
	}
	g.broker = g.nodes
	return g, nil
}

// openGround is newGround without a broker.
func openGround(ctx context.Context, s lab.Settings) (g *ground, err error) {
	l, err := lab.Open(ctx, s, pgdev.Options{Durable: true}, sql)
	if err != nil {
		return nil, err
	}
	g = &ground{Lab: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if _, err := l.Pool.Exec(ctx, "CREATE DATABASE there"); err != nil {
		return g, fmt.Errorf("create the database there: %w", err)
	}
	at, err := url.Parse(l.Server.DSN())
	if err != nil {
		return g, err
	}
	at.Path = "/there"
	g.thereDSN = at.String()
	pool, err := lab.Prepare(ctx, g.thereDSN, sql)
	if err != nil {
		return g, err
	}
	pool.Close()
	g.there, err = newSide(ctx, g.thereDSN, bus.Options{})
	return g, err
}

// closeAfter ends everything if there is an error, and returns it.
func (g *ground) closeAfter(err error) error {
	if err != nil {
		err = errors.Join(err, g.close())
	}
	return err
}

// here is the lab's own database.
func (g *ground) here() *side { return &side{pool: g.Pool, bus: g.Bus} }

func (g *ground) close() error {
	var nodes error
	if g.there != nil {
		g.there.pool.Close()
	}
	if g.broker != nil {
		nodes = g.broker.Stop()
	}
	return errors.Join(nodes, g.Close())
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := bus.New(pool, o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &side{pool: pool, bus: b}, nil
}
