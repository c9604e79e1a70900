package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	jobs     = "jobs"
	effects  = "effects"
	lease    = 3 * time.Second
	most     = 5 // the largest limit
	reuse    = lease + 2*time.Second
	backlog  = 4000 // messages sent before
	defaults = 20 * time.Second
)

type settings struct {
	workers int
	length  time.Duration
	seed    uint64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if procs.IsWorker(workerVariable) {
		exit(work(ctx))
		return
	}
	s := settings{}
	flag.IntVar(&s.workers, "workers", 3, "worker processes")
	flag.DurationVar(&s.length, "for", time.Minute, "how long limits change and workers die")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "decides what happens when")
	o := ordering{}
	inOrder := flag.Bool("order", false, "keep the order of keys instead: the scenario of order.go")
	flag.IntVar(&o.keys, "keys", 20, "with -order: keys")
	flag.IntVar(&o.messages, "messages", 1000, "with -order: messages of each key")
	flag.IntVar(&o.kills, "kills", 30, "with -order: processes that are killed")
	flag.IntVar(&o.freezes, "freezes", 30, "with -order: processes that are stopped for longer than their leases")
	flag.Parse()
	exit(onServer(ctx, s, func(pool *pgxpool.Pool, dsn string) error {
		if *inOrder {
			return order(ctx, s, o, pool, dsn)
		}
		return limits(ctx, s, pool, dsn)
	}))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

var errBroken = errors.New("the promise was broken")

// onServer runs a scenario on a Postgres of its own.
func onServer(ctx context.Context, s settings, scenario func(pool *pgxpool.Pool, dsn string) error) error {
	fmt.Printf("seed %d\n", s.seed)
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true, Private: true})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	pool, err := pgxpool.New(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer pool.Close()
	return scenario(pool, server.DSN())
}

// limits is both parts: the chaos, and one death at defaults.
func limits(ctx context.Context, s settings, pool *pgxpool.Pool, dsn string) error {
	b, err := prepare(ctx, pool)
	if err != nil {
		return err
	}
	if err := chaos(ctx, s, pool, b, dsn); err != nil {
		return err
	}
	verdict, err := judge(ctx, pool)
	if err != nil {
		return err
	}
	verdict.again, err = dieAtDefaults(ctx, pool, b, dsn)
	if err != nil {
		return err
	}
	fmt.Println(verdict.line(s))
	if verdict.broken() {
		return errBroken
	}
	return nil
}

// prepare makes the schema, the witness and the two queues, and sends the backlog.
func prepare(ctx context.Context, pool *pgxpool.Pool) (*bus.Bus, error) {
	if err := migrate.Up(ctx, pool, migrate.Options{}); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, witnessSQL("create")); err != nil {
		return nil, err
	}
	b, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := b.InstallQueue(ctx, jobs, job{}.Kind(), slowJob{}.Kind()); err != nil {
		return nil, err
	}
	if err := b.InstallQueue(ctx, effects, effect{}.Kind()); err != nil {
		return nil, err
	}
	if err := b.SetLimit(ctx, jobs, 3); err != nil {
		return nil, err
	}
	for n := range backlog {
		if _, err := b.Send(ctx, job{N: n}); err != nil {
			return nil, err
		}
	}
	return b, nil
}
