package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// serverVariable makes this program a server; its value is the server as JSON.
const serverVariable = "EDDA_SCHEDULED_SERVER"

// server is what one process is told when it starts.
type server struct {
	Name   string // of the replica, and in pg_stat_activity
	DSN    string
	Schema string // of our tables
	Night  time.Duration
	Until  time.Time
}

// job is the server of a place, which has the same name in each of its lives.
func (s server) job(place, _ int) procs.Job {
	s.Name = fmt.Sprintf("server-%d", place+1)
	return procs.Job{Name: s.Name, Variable: serverVariable, Task: s}
}

// serve is the whole life of a server process. It ends by SIGKILL, or in order when its parent asks it to or has died.
func serve(ctx context.Context) error {
	s := server{}
	ctx, err := procs.Attend(ctx, serverVariable, &s)
	if err != nil {
		return err
	}
	d, err := demo.Connect(ctx, s.DSN, s.Schema, s.Name)
	if err != nil {
		return err
	}
	defer d.Pool.Close()
	host, err := s.host(d.Pool)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

// host is what each server runs: the scheduler, and the endpoints for its messages and for what follows from them.
func (s server) host(pool *pgxpool.Pool) (*edda.Host, error) {
	sql, err := load(s.Schema)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	b, err := bus.New(pool, bus.Options{Schema: demo.EddaSchema(s.Schema), Logger: log})
	if err != nil {
		return nil, err
	}
	o := office{sql: sql}
	desk, err := bus.NewEndpoint(b, "office", bus.EndpointOptions{Concurrency: 2, Drain: 5 * time.Second},
		bus.Saga(settlements),
		bus.HandleTx(o.enter), bus.HandleTx(o.report), bus.HandleTx(o.poll), bus.HandleTx(o.rates))
	if err != nil {
		return nil, err
	}
	// The lease is short, so that the bank is asked again soon after a server died that had asked.
	far, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{Lease: time.Second, Drain: 5 * time.Second},
		bus.Handle(bank{takes: s.Night / 5}.ask))
	if err != nil {
		return nil, err
	}
	clock, err := scheduler.New(b, s.options(log), manifests(s.Night, s.Until)...)
	if err != nil {
		return nil, err
	}
	return edda.NewHost(desk, far, clock)
}

// options has a lease that is shorter than the default, so that the other server evaluates two seconds after one was
// killed.
func (s server) options(log *slog.Logger) scheduler.Options {
	return scheduler.Options{
		Owner: owner, Groups: groups(), Holder: s.Name, Logger: log,
		Lease: 2 * time.Second, LeaseRenew: 500 * time.Millisecond, LeaseAcquire: 500 * time.Millisecond,
	}
}
