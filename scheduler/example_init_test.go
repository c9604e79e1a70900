package scheduler_test

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The parts that the example of a Singleton leaves out: a Postgres, and a table of rates.

// ratesSchema is unique to this run, since DATABASE_URL may name a server that others use.
var ratesSchema = "example_" + strings.ToLower(rand.Text()[:10])

var (
	ratesServer *pgdev.Server
	ratesPool   *pgxpool.Pool
)

// checkRates fails the example if err is not nil, by printing it.
func checkRates(err error) {
	if err != nil {
		panic(err)
	}
}

func openRates() (context.Context, *pgxpool.Pool, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), pgdev.Patience(time.Minute))
	var err error
	ratesServer, err = pgdev.Start(ctx, pgdev.Options{})
	checkRates(err)
	config, err := pgxpool.ParseConfig(ratesServer.DSN())
	checkRates(err)
	config.ConnConfig.RuntimeParams["search_path"] = ratesSchema
	ratesPool, err = pgxpool.NewWithConfig(ctx, config)
	checkRates(err)
	checkRates(migrations.Up(ctx, ratesPool, migrations.Options{Schema: ratesSchema}))
	_, err = ratesPool.Exec(ctx, "CREATE TABLE rate AS SELECT 'USD' AS currency, 0::float8 AS euro")
	checkRates(err)
	return ctx, ratesPool, cancel
}

func closeRates() {
	_, err := ratesPool.Exec(context.Background(), "DROP SCHEMA "+pgx.Identifier{ratesSchema}.Sanitize()+" CASCADE")
	checkRates(err)
	ratesPool.Close()
	checkRates(ratesServer.Stop())
}
