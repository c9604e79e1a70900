package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
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
var statements string

// sql is a statement of border.sql. The checker's schema is its own, in both databases.
func sql(name string) string {
	schema, err := pg.ParseSchema("checker")
	if err != nil {
		panic(err)
	}
	all, err := pg.Load(statements, schema)
	if err != nil {
		panic(err)
	}
	return all.Get(name)
}

// ground is what a phase stands on: a Postgres with the databases here and there, and JetStream.
type ground struct {
	server      *pgdev.Server
	nodes       *cluster.Cluster
	here, there string // connection strings
}

// newGround starts everything anew, so that no phase works with what another left.
func newGround(ctx context.Context, o cluster.Options) (g *ground, err error) {
	g = &ground{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	settings := map[string]string{"max_connections": "200"}
	if g.server, err = pgdev.Start(ctx, pgdev.Options{Durable: true, Private: true, Settings: settings}); err != nil {
		return g, err
	}
	g.here = g.server.DSN()
	if g.there, err = second(ctx, g.here); err != nil {
		return g, err
	}
	for _, dsn := range []string{g.here, g.there} {
		if err := prepare(ctx, dsn); err != nil {
			return g, err
		}
	}
	g.nodes, err = cluster.Start(ctx, o)
	return g, err
}

// second makes the other database, beside the first.
func second(ctx context.Context, here string) (string, error) {
	pool, err := pgxpool.New(ctx, here)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, sql("database")); err != nil {
		return "", fmt.Errorf("create the database there: %w", err)
	}
	at, err := url.Parse(here)
	if err != nil {
		return "", err
	}
	at.Path = "/there"
	return at.String(), nil
}

// prepare migrates a database and makes the checker's tables.
func prepare(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate.Up(ctx, pool, migrate.Options{}); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, sql("create"))
	return err
}

func (g *ground) close() error {
	var faults []error
	if g.nodes != nil {
		faults = append(faults, g.nodes.Stop())
	}
	if g.server != nil {
		faults = append(faults, g.server.Stop())
	}
	return errors.Join(faults...)
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

// sides are a bus in each database.
type sides struct{ here, there *side }

// sides opens both. The caller closes them.
func (g *ground) sides(ctx context.Context) (both sides, err error) {
	if both.here, err = newSide(ctx, g.here, bus.Options{}); err != nil {
		return both, err
	}
	if both.there, err = newSide(ctx, g.there, bus.Options{}); err != nil {
		both.here.pool.Close()
	}
	return both, err
}

func (s sides) close() {
	s.here.pool.Close()
	s.there.pool.Close()
}
