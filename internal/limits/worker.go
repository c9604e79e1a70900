package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/procs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// job takes up to half a second, or no time at all once the chaos is over.
type job struct{ N int }

// slowJob takes longer than anything in the test: its worker is killed.
type slowJob struct{ N int }

// effect is what a job sends.
type effect struct {
	N, Slot int
	Epoch   int64
}

func (job) Kind() string     { return "limits.job" }
func (slowJob) Kind() string { return "limits.slow" }
func (effect) Kind() string  { return "limits.effect" }

// workerVariable makes this program a worker; its value is the worker as JSON.
const workerVariable = "EDDA_LIMITS_WORKER"

type worker struct {
	Name     string
	DSN      string
	Defaults bool // the lease of the library, and slow jobs
	Order    bool // it keeps the order of keys, see orderly.go
}

// start runs the worker as a process of its own.
func (w worker) start() (*procs.Process, error) {
	return procs.Start(procs.Job{Name: w.Name, Variable: workerVariable, Task: w, Stderr: os.Stderr})
}

// work is the whole life of a worker process.
func work(ctx context.Context) error {
	w := worker{}
	ctx, err := procs.Attend(ctx, workerVariable, &w)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{Logger: slog.New(
		slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return err
	}
	host, err := w.host(b, pool)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

func (w worker) host(b *bus.Bus, pool *pgxpool.Pool) (*edda.Host, error) {
	if w.Order {
		return orderly{worker: w.Name, pool: pool}.host(b)
	}
	o := bus.EndpointOptions{Concurrency: most, Lease: lease, Poll: 200 * time.Millisecond}
	if w.Defaults {
		o = bus.EndpointOptions{}
	}
	h := handlers{worker: w.Name, pool: pool}
	working, err := bus.NewEndpoint(b, jobs, o, bus.Handle(h.job), bus.Handle(h.slow))
	if err != nil {
		return nil, err
	}
	counting, err := bus.NewEndpoint(b, effects, bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(h.count))
	if err != nil {
		return nil, err
	}
	return edda.NewHost(pool, working, counting)
}

type handlers struct {
	worker string
	pool   *pgxpool.Pool
}

// job tells the witness when it begins and when it ends, each in a transaction of its own.
func (h handlers) job(ctx *bus.Context, m job) error {
	slot, epoch := ctx.Slot()
	var quick bool
	if err := h.pool.QueryRow(ctx, witnessSQL("begin"), slot, epoch, h.worker, m.N).Scan(&quick); err != nil {
		return err
	}
	if !quick {
		select {
		case <-time.After(time.Duration(50+rand.IntN(450)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if _, err := h.pool.Exec(ctx, witnessSQL("end"), slot, epoch); err != nil {
		return err
	}
	ctx.Send(effect{N: m.N, Slot: slot, Epoch: epoch})
	return nil
}

func (h handlers) slow(ctx *bus.Context, m slowJob) error {
	slot, epoch := ctx.Slot()
	var quick bool
	if err := h.pool.QueryRow(ctx, witnessSQL("begin"), slot, epoch, h.worker, -1-m.N).Scan(&quick); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// count keeps what a job sent, and when it was sent by the database's clock.
func (handlers) count(ctx *bus.Context, tx pgx.Tx, m effect) error {
	_, err := tx.Exec(ctx, witnessSQL("count"), m.N, m.Slot, m.Epoch, ctx.Info().Sent)
	return err
}
