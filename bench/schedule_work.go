package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed schedule.sql
var scheduleSQL string

// firing is the scheduler at its defaults, over a bus at its defaults. The harness runs it as a peer; it is not in the
// order of peers, because there is no peer to compare it with.
type firing struct{}

func init() { register(Schedule, firing{}) }

// Prepare stores the manifests: one by the API, the others as copies of it.
func (f firing) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := migrations.Up(ctx, db, migrations.Options{Schema: c.Schema()}); err != nil {
		return err
	}
	b, err := bus.New(db, bus.Options{Schema: c.Schema()})
	if err != nil {
		return err
	}
	endpoint, err := f.endpoint(b, c.Schema())
	if err != nil {
		return err
	}
	if err := endpoint.Install(ctx); err != nil { // queue_1
		return err
	}
	store, err := scheduler.NewStore(db, scheduler.StoreOptions{Schema: c.Schema()})
	if err != nil {
		return err
	}
	if err := store.Put(ctx, f.manifest(c)); err != nil {
		return err
	}
	return f.copies(ctx, db, c)
}

// manifest returns the manifest that all others copy. Its message is that of the other workloads.
func (firing) manifest(c Case) scheduler.Manifest {
	m := scheduler.Manifest{
		Name: "m1", When: scheduler.Every(24 * time.Hour), Misfire: scheduler.MisfireAll,
		Message: Charge{Order: orderKey(1), Seq: 1, Amount: 1, Customer: "customer-0001", Note: "second instalment"},
	}
	if c.Workload == ScheduleLateness {
		m.When = scheduler.Every(time.Second)
	}
	return m
}

func (firing) copies(ctx context.Context, db *pgxpool.Pool, c Case) error {
	sql := statements(scheduleSQL, c.Schema())
	todo := map[string]int{ScheduleRate: c.N, ScheduleLateness: firingsPerSecond, ScheduleStored: c.Size}
	if _, err := db.Exec(ctx, sql["copy"], todo[c.Workload]); err != nil {
		return fmt.Errorf("copy the manifest: %w", err)
	}
	err := error(nil)
	switch c.Workload {
	case ScheduleRate:
		_, err = db.Exec(ctx, sql["all_due"])
	case ScheduleLateness:
		_, err = db.Exec(ctx, sql["begun"])
	}
	return err
}

// endpoint handles the messages of the lateness: each notes when its handler began, and when its message was put on the
// bus. The other two parts only need its queue.
func (firing) endpoint(b *bus.Bus, schema string) (*bus.Endpoint, error) {
	note := statements(scheduleSQL, schema)["handle"]
	return bus.NewEndpoint(b, "work", bus.EndpointOptions{},
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ Charge) error {
			fire := ctx.Info().Firing
			if fire == nil {
				return saga.Permanent(errors.New("the message is of no run"))
			}
			_, err := tx.Exec(ctx, note, fire.Run, fire.Attempt)
			return err
		}))
}

// Work runs one scheduler until everything has been fired.
func (f firing) Work(ctx context.Context, w *Worker) error {
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	quiet := slog.New(slog.DiscardHandler)
	b, err := bus.New(pool, bus.Options{Schema: w.Schema(), History: noHistory, Logger: quiet})
	if err != nil {
		return err
	}
	s, err := scheduler.New(b, scheduler.Options{Logger: quiet})
	if err != nil {
		return err
	}
	until, err := f.comeDue(ctx, w, pool)
	if err != nil {
		return err
	}
	runs := []func(context.Context) error{s.Run}
	if w.Workload == ScheduleLateness {
		endpoint, err := f.endpoint(b, w.Schema())
		if err != nil {
			return err
		}
		runs = append(runs, endpoint.Run)
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	// A lost message would never arrive.
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("not everything was fired within 2 minutes"))
	defer cancel()
	return runAllUntil(ctx, runs, until)
}

// comeDue gives the manifests their due times, and returns a function that waits until all of them were fired.
func (firing) comeDue(ctx context.Context, w *Worker, pool *pgxpool.Pool) (until func(context.Context) error,
	err error) {
	sql := statements(scheduleSQL, w.Schema())
	allSent := func(ctx context.Context) error {
		return poll(ctx, func(ctx context.Context) (done bool, err error) {
			err = pool.QueryRow(ctx, sql["all_sent"]).Scan(&done)
			return done, err
		})
	}
	switch w.Workload {
	case ScheduleLateness:
		var begin time.Time
		err := pool.QueryRow(ctx, sql["spread"], firingsPerSecond).Scan(&begin)
		end := begin.Add(time.Duration(w.N/firingsPerSecond) * time.Second)
		return func(ctx context.Context) error {
			if err := run.Sleep(ctx, time.Until(end)); err != nil {
				return err
			}
			return poll(ctx, func(ctx context.Context) (bool, error) {
				n := 0
				err := pool.QueryRow(ctx, sql["begun_until"], end).Scan(&n)
				return n >= w.N, err
			})
		}, err
	case ScheduleStored:
		batches := w.N / hundred
		_, err := pool.Exec(ctx, sql["some_due"], batches, w.Size, batchGap.Microseconds())
		last := time.Now().Add(3*time.Second + time.Duration(batches-1)*batchGap)
		return func(ctx context.Context) error {
			if err := run.Sleep(ctx, time.Until(last)); err != nil {
				return err
			}
			return allSent(ctx)
		}, err
	}
	return allSent, pool.Ping(ctx)
}

// pollGap is the pause between two polls of a process for remaining work: a poll costs the server a few firings.
const pollGap = 25 * time.Millisecond

// poll calls ask until it reports done or fails.
func poll(ctx context.Context, ask func(context.Context) (done bool, err error)) error {
	for {
		if done, err := ask(ctx); done || err != nil {
			return err
		}
		if err := run.Sleep(ctx, pollGap); err != nil {
			return err
		}
	}
}

// Effects is not used: the harness counts by part.
func (firing) Effects(context.Context, *pgxpool.Pool, Case) (Effects, error) { return Effects{}, nil }
