package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda/examples/remote/shop"
	"github.com/edda-go/edda/examples/remote/worker"
	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// roleVariable makes the program one of the two; its value is the role as JSON.
const roleVariable = "EDDA_EXAMPLE_REMOTE"

// role is what a process is told.
type role struct {
	Broker string
	DSN    string // of the shop
	Dir    string // of the worker: where it puts its invoices
}

// play is the life of a process: it has a DSN and is the shop, or it is the worker.
func play(ctx context.Context) error {
	var r role
	ctx, err := procs.Attend(ctx, roleVariable, &r)
	if err != nil {
		return err
	}
	l, err := connect(r.Broker)
	if err != nil {
		return err
	}
	defer l.close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if r.DSN == "" {
		return worker.Run(ctx, r.Dir, log, l.publisher, l.subscribe)
	}
	pool, err := pgxpool.New(ctx, r.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := shop.Run(ctx, pool, log, l.publisher, l.subscribe); ctx.Err() == nil {
		return err
	}
	return nil // it was asked to end, perhaps before it had begun
}

// stage is what the two programs stand on.
type stage struct {
	server *pgdev.Server
	pool   *pgxpool.Pool
	store  *scheduler.Store
	broker *cluster.Cluster
	dir    string
}

// show starts everything, lets the schedule run, and checks.
func show(ctx context.Context, s settings, out io.Writer) (err error) {
	_, _ = fmt.Fprintln(out, "A Postgres and a broker are started; that takes a few seconds.")
	g := &stage{}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.open(ctx); err != nil {
		return err
	}
	kills := 0
	workers := procs.NewWorkers(2, g.job, procs.Options{})
	all := run.NewGroup(ctx)
	all.Go(workers.Run)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		if err := g.until(ctx, restWithin, func(v verdict) bool { return v.runs > 0 }); err != nil {
			return err
		}
		for end := time.Now().Add(s.lasting); time.Now().Before(end); {
			if err := run.Sleep(ctx, min(time.Until(end), time.Second+rand.N(3*time.Second))); err != nil {
				return err
			}
			if p := workers.Any(rand.New(rand.NewPCG(rand.Uint64(), 1))); s.kills && p != nil {
				p.Kill()
				kills++
				_, _ = fmt.Fprintf(out, "%s was killed\n", p.Name)
			}
		}
		return g.rest(ctx)
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was checked")
	}
	v, err := g.check(ctx)
	if err != nil {
		return err
	}
	v.kills = kills
	_, _ = fmt.Fprintln(out, v)
	if !v.fine() {
		return errWrong
	}
	return nil
}

func (g *stage) open(ctx context.Context) (err error) {
	if g.dir, err = os.MkdirTemp("", "edda-invoices-"); err != nil {
		return err
	}
	if g.broker, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return err
	}
	if err := provision(ctx, g.broker); err != nil {
		return err
	}
	if g.server, err = pgdev.Start(ctx, pgdev.Options{Durable: true, Private: true}); err != nil {
		return err
	}
	if g.pool, err = pgxpool.New(ctx, g.server.DSN()); err != nil {
		return err
	}
	if err := migrate.Up(ctx, g.pool, migrate.Options{}); err != nil {
		return err
	}
	g.store, err = scheduler.NewStore(g.pool, scheduler.StoreOptions{})
	return err
}

// job describes the next process at a place.
func (g *stage) job(place, life int) procs.Job {
	r, name := role{Broker: g.broker.URL(), DSN: g.server.DSN()}, "the shop"
	if place == 1 {
		r, name = role{Broker: g.broker.URL(), Dir: g.dir}, "the worker"
	}
	return procs.Job{Name: fmt.Sprintf("%s, process %d,", name, life), Variable: roleVariable, Task: r}
}

func (g *stage) close() (err error) {
	if g.pool != nil {
		g.pool.Close()
	}
	if g.server != nil {
		err = g.server.Stop()
	}
	if g.broker != nil {
		err = errors.Join(err, g.broker.Stop())
	}
	return errors.Join(err, os.RemoveAll(g.dir))
}
