package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// exampleWithin ends an Example that hangs.
const exampleWithin = time.Minute

// Must ends the process if err is not nil: an Example has no testing.TB.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Example returns, for an Example, the replacement of a program's Postgres: a pool to a new database with the tables
// of Edda in the schema edda. end ends ctx, closes the pool and drops the database.
func Example() (ctx context.Context, pool *pgxpool.Pool, end func()) {
	ctx, pool, end = EmptyExample()
	Must(runScript(ctx, pool, "edda"))
	return ctx, pool, end
}

// EmptyExample is Example without the tables.
func EmptyExample() (ctx context.Context, pool *pgxpool.Pool, end func()) {
	ctx, cancel := context.WithTimeout(context.Background(), exampleWithin) //nolint:forbidigo // an Example has no ctx
	shared, err := pgdev.SharedDSN(ctx)
	Must(err)
	name := "example_" + strings.ToLower(rand.Text()[:10])
	quoted := pgx.Identifier{name}.Sanitize()
	administer(ctx, shared, "CREATE DATABASE "+quoted)
	to, err := url.Parse(shared)
	Must(err)
	to.Path = "/" + name
	config, err := pgxpool.ParseConfig(to.String())
	Must(err)
	config.MaxConns = 10
	pool, err = pgxpool.NewWithConfig(ctx, config)
	Must(err)
	return ctx, pool, func() {
		cancel()
		pool.Close()
		administer(context.WithoutCancel(ctx), shared, "DROP DATABASE "+quoted+" WITH (FORCE)")
	}
}

func administer(ctx context.Context, dsn, sql string) {
	conn, err := pgx.Connect(ctx, dsn)
	Must(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	Must(err)
}

// Start installs a runner if it has an Install, and runs it until stop is called, which waits for its end.
func Start(ctx context.Context, r interface {
	Run(ctx context.Context) error
}) (stop func()) {
	if i, ok := r.(interface {
		Install(ctx context.Context) error
	}); ok {
		Must(i.Install(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		Must(<-ended)
	}
}
