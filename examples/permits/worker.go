package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// workerVariable makes this program a worker; its value is the worker as JSON.
const workerVariable = "EDDA_PERMITS_WORKER"

// worker is what one process is told when it starts.
type worker struct {
	Name   string // in pg_stat_activity
	DSN    string
	Schema string
	Store  saga.Store
	Pace   pace
}

// job is the worker of a place, in one of its lives, as its parent starts it.
func (w worker) job(place, life int) procs.Job {
	w.Name = fmt.Sprintf("%.50s-%d-%d", w.Schema, place+1, life)
	return procs.Job{Name: w.Name, Variable: workerVariable, Task: w}
}

// work is the whole life of a worker process. It ends by SIGKILL, or in order when its parent asks it to or has died.
func work(ctx context.Context) error {
	w := worker{}
	ctx, err := procs.Attend(ctx, workerVariable, &w)
	if err != nil {
		return err
	}
	pool, err := connect(ctx, w.DSN, w.Schema, w.Name)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, endpoints, err := w.endpoints(pool)
	if err != nil {
		return err
	}
	all := run.NewGroup(ctx)
	for _, e := range endpoints {
		all.Go(e.Run)
	}
	return all.Wait()
}

// endpoints are the queue of the saga, and that of the recorder.
func (w worker) endpoints(pool *pgxpool.Pool) (*bus.Bus, []*bus.Endpoint, error) {
	sql, err := load(w.Schema)
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := bus.New(pool, bus.Options{Schema: engineSchema(w.Schema), Logger: log})
	if err != nil {
		return nil, nil, err
	}
	o := bus.EndpointOptions{Concurrency: 2, Drain: 5 * time.Second}
	cases, err := bus.NewEndpoint(b, "cases", o, bus.Saga(define(w.Store, w.Pace)))
	if err != nil {
		return nil, nil, err
	}
	r := recorder{sql: sql, by: w.Name}
	records, err := bus.NewEndpoint(b, "records", o, bus.HandleTx(r.filed), bus.HandleTx(r.overdue))
	return b, []*bus.Endpoint{cases, records}, err
}
