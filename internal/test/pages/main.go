package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/big"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5/pgxpool"
)

// options are the flags.
type options struct {
	part   int
	times  int
	most   time.Duration
	seeded bool
	only   string
	detail bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.IntVar(&o.part, "part", 1, "seed this part of everything: 10 is a tenth")
	flag.IntVar(&o.times, "times", 20, "how often each page is requested")
	flag.DurationVar(&o.most, "most", 50*time.Millisecond, "the median that a page may take")
	flag.BoolVar(&o.seeded, "seeded", false, "the database of DATABASE_URL was seeded before")
	flag.StringVar(&o.only, "only", "", "request only pages whose name contains this")
	flag.BoolVar(&o.detail, "v", false, "print the statements of each page that read most")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// settings are the settings of a server that is tuned only for its memory.
var settings = map[string]string{
	"shared_buffers": "1GB", "max_wal_size": "8GB", "shared_preload_libraries": "pg_stat_statements",
	"pg_stat_statements.track": "all",
}

func run(ctx context.Context, o options) (err error) {
	server, err := pgdev.Start(ctx, pgdev.Options{Settings: settings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	pool, err := pgxpool.New(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer pool.Close()
	world, err := prepare(ctx, pool, o)
	if err != nil {
		return err
	}
	reading, err := world.Readers(ctx, reader)
	if err != nil {
		return err
	}
	defer reading.Close()
	//nolint:contextcheck // what it connects with is of each request
	ui, err := eddaui.New(pool, eddaui.Options{Reader: reading, Log: slog.New(slog.DiscardHandler),
		Authorize: everything})
	if err != nil {
		return err
	}
	defer ui.Close()
	m := meter{options: o, pool: pool, reading: reading, world: world, ui: ui}
	return m.all(ctx)
}

// prepare seeds a world, or opens one.
func prepare(ctx context.Context, pool *pgxpool.Pool, o options) (*big.World, error) {
	size := big.Large.Part(o.part)
	if o.seeded {
		return big.Open(ctx, pool, "edda", size)
	}
	if err := migrations.Up(ctx, pool, migrations.Options{}); err != nil {
		return nil, err
	}
	began := time.Now()
	world, err := big.Seed(ctx, pool, "edda", size)
	if err == nil {
		_, err = pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
	}
	fmt.Printf("seeded in %v\n", time.Since(began).Round(time.Second))
	return world, err
}
