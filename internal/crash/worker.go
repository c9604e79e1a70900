package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/procs"
	"github.com/jackc/pgx/v5/pgxpool"
)

// workerVariable makes this program a worker; its value is the worker as JSON.
const workerVariable = "EDDA_CRASH_WORKER"

// worker is one process that runs every endpoint of a workload at defaults, but for MaxCrashes.
type worker struct {
	Name     string // shows in the ledger and in pg_stat_activity
	DSN      string // through the worker's own proxy
	Workload workload
}

// workload says which endpoints run.
type workload string

const (
	bare      workload = "bare"  // plain handlers alone
	withSagas workload = "sagas" // these, and sagas of both stores
)

// work is the whole life of a worker process. It ends by SIGKILL, or when the parent has gone.
func work(ctx context.Context) error {
	w := &worker{}
	ctx, err := procs.Attend(ctx, workerVariable, w)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	endpoints, pool, err := w.open(ctx, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	var all sync.WaitGroup
	for _, e := range endpoints {
		all.Go(func() { w.keepRunning(ctx, e, log) })
	}
	all.Wait()
	return nil
}

// open makes the bus and its endpoints.
func (w *worker) open(ctx context.Context, log *slog.Logger) ([]*bus.Endpoint, *pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(w.DSN)
	if err != nil {
		return nil, nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = w.Name
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, fmt.Errorf("open a pool: %w", err)
	}
	b, err := bus.New(pool, bus.Options{Logger: log})
	if err != nil {
		return nil, nil, err
	}
	var endpoints []*bus.Endpoint
	for name, parts := range w.parts() { //nolint:contextcheck // a handler is given its own context
		// A worker is killed wherever it is, and again and again at the same message: nobody is to be blamed for that.
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{MaxCrashes: math.MaxInt32}, parts...)
		if err != nil {
			return nil, nil, err
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, pool, nil
}

func (w *worker) parts() map[string][]bus.Part {
	parts := w.plainEndpoints()
	if w.Workload == withSagas {
		for name, p := range w.sagaEndpoints() {
			parts[name] = p
		}
	}
	return parts
}

// keepRunning does what an orchestrator does: an endpoint that could not start is started again.
func (w *worker) keepRunning(ctx context.Context, e *bus.Endpoint, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := e.Run(ctx); err != nil {
			log.Warn("the endpoint ended", "endpoint", e.Name(), "error", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
