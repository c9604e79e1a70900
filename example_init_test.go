package edda_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The parts that the example leaves out: a Postgres, a table of its shop, and the wait for its end.

// schema is unique to this run, since DATABASE_URL may name a server that others use.
var schema = "example_" + strings.ToLower(rand.Text()[:10])

// payWithin is short, so that the example ends.
const payWithin = 20 * time.Millisecond

var (
	server  *pgdev.Server
	shop    *pgxpool.Pool
	stop    context.CancelFunc
	ended   = make(chan error, 1)
	handled = make(chan string, 2)
)

// check fails the example if err is not nil, by printing it.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// openPool opens the pool of a program to a database with the tables of Edda.
var openPool, start = pgtest.Example, pgtest.Start

func openShop() (context.Context, *pgxpool.Pool) {
	ctx, cancel := context.WithTimeout(context.Background(), pgdev.Patience(time.Minute))
	stop = cancel
	var err error
	server, err = pgdev.Start(ctx, pgdev.Options{})
	check(err)
	config, err := pgxpool.ParseConfig(server.DSN())
	check(err)
	config.ConnConfig.RuntimeParams["search_path"] = schema
	shop, err = pgxpool.NewWithConfig(ctx, config)
	check(err)
	name := pgx.Identifier{schema}.Sanitize()
	_, err = shop.Exec(ctx, "CREATE SCHEMA "+name)
	check(err)
	_, err = shop.Exec(ctx, "CREATE TABLE orders (id text PRIMARY KEY, email text NOT NULL)")
	check(err)
	return ctx, shop
}

// tell records the events of the bus. It is called after the commit that an event reports.
func tell(e event.Event) {
	if e, ok := e.(event.Handled); ok {
		handled <- fmt.Sprintf("%s/%s handled %s", e.Saga, e.Key, e.Info.Kind)
	}
}

// closeShop ends the endpoint, and removes the schema and the table.
func closeShop() {
	stop()
	check(<-ended)
	_, err := shop.Exec(context.Background(), "DROP SCHEMA "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
	check(err)
	shop.Close()
	check(server.Stop())
}
