package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// workerVariable makes this program a worker; its value is the worker as JSON.
const workerVariable = "EDDA_BORDER_WORKER"

// lease is how long a relay stays with a process that does not renew it.
const lease = 2 * time.Second

// worker is a process on one side of the border. Here it tells messages and relays, there it takes them in and handles
// them.
type worker struct {
	Name string
	Here bool
	DSN  string // of its side
	Way  way
}

// member is a worker that runs.
type member struct {
	*procs.Process
	here bool
}

func (w worker) start() (*member, error) {
	p, err := procs.Start(procs.Job{Name: w.Name, Variable: workerVariable, Task: w, Stderr: os.Stderr})
	return &member{Process: p, here: w.Here}, err
}

// calm has the worker tell nothing more, and relay what is there.
func (m *member) calm() error { return m.WriteLine("calm") }

// work is the whole life of a worker process.
func work(ctx context.Context) error {
	w := worker{}
	telling, calm := context.WithCancel(ctx)
	defer calm()
	ctx, err := procs.Listen(ctx, workerVariable, &w, func(string) { calm() })
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, calm)
	s, err := newSide(ctx, w.DSN, bus.Options{})
	if err != nil {
		return err
	}
	defer s.pool.Close()
	if w.Here {
		return w.here(ctx, telling, s)
	}
	return w.there(ctx, s)
}

func (w worker) here(ctx, telling context.Context, s *side) error {
	relay, end, err := w.Way.relay(s, bus.RelayOptions{Lease: lease, Poll: 200 * time.Millisecond, Server: w.Name,
		RetryMost: time.Second})
	if err != nil {
		return err
	}
	defer end()
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error { return persist(ctx, s, relay) })
	for n := range 4 {
		group.Go(func(context.Context) error { tell(telling, s, fmt.Sprint(w.Name, ".", n)); return nil })
	}
	return group.Wait()
}

// tell sends numbered messages of one key until telling is over. A number whose transaction failed is not told.
func tell(telling context.Context, s *side, key string) {
	for n := int64(0); telling.Err() == nil; n++ {
		m := said{Key: key, N: n}
		_ = s.bus.InTx(telling, func(tx pgx.Tx) error {
			if _, err := tx.Exec(telling, sql("tell"), m.Key, m.N); err != nil {
				return err
			}
			_, err := s.bus.PublishTx(telling, tx, m, saga.WithHeader(keyHeader, key))
			return err
		})
		_ = run.Sleep(telling, run.Jitter(10*time.Millisecond)) // its end is the loop's
	}
}

func (w worker) there(ctx context.Context, s *side) error {
	intake, end, err := w.Way.intake(s, "", straight) // events: they go to whoever is subscribed
	if err != nil {
		return err
	}
	defer end()
	listener, err := newListener(s)
	if err != nil {
		return err
	}
	return persist(ctx, s, intake, listener)
}

// newListener is the endpoint there: it notes each message in the transaction that consumes it.
func newListener(s *side) (*bus.Endpoint, error) {
	return bus.NewEndpoint(s.bus, heard, bus.EndpointOptions{Concurrency: 2, Poll: 200 * time.Millisecond},
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m said) error {
			_, err := tx.Exec(ctx, sql("handle"), m.Key, m.N)
			return err
		}))
}

// persist runs them again when they end because Postgres was away at a moment when they need it, as a supervisor would.
func persist(ctx context.Context, s *side, runners ...edda.Runner) error {
	for ctx.Err() == nil {
		host, err := edda.NewHost(s.pool, runners...)
		if err != nil {
			return err
		}
		if err := host.Run(ctx); err != nil && ctx.Err() == nil {
			say(fmt.Sprint("it ended, and runs again: ", err))
			_ = run.Sleep(ctx, 200*time.Millisecond) // its end is the loop's
		}
	}
	return nil
}
