package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed river.sql
var riverSQL string

// riverTuning holds our settings of River; a zero duration is River's default. peers/river.md lists the trials.
type riverTuning struct {
	workers  int           // jobs at a time
	conns    int32         // of the pool
	cooldown time.Duration // between two fetches
	poll     time.Duration // between two looks without a notification
	steady   bool          // generic plans, by index
}

// riverPeer is River as its documentation shows a job whose effects and completion share a transaction.
type riverPeer struct{ tuned bool }

func init() {
	register("river", riverPeer{tuned: true},
		Case{Workload: Step, Share: 0.03},
		Case{Workload: Hot, Processes: 1, Share: 0.01},
		Case{Workload: Latency},
		Case{Workload: Leased, Share: 0.5},
	)
	register("river-defaults", riverPeer{}, Case{Workload: Latency})
}

const (
	riverWork = "work"
	riverSink = "sink"
)

// riverDefaults are River's own. It has no default number of workers: its documentation shows 100.
var riverDefaults = riverTuning{workers: 100, conns: 16}

// tuning is by workload: fetching rarely and much serves the throughput, fetching at once the latency.
func (p riverPeer) tuning(workload string) riverTuning {
	switch {
	case !p.tuned:
		return riverDefaults
	case workload == Latency:
		return riverTuning{workers: 8, conns: 12, cooldown: time.Millisecond, poll: 100 * time.Millisecond,
			steady: true}
	case workload == Leased:
		return riverTuning{workers: 2000, conns: 8, cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond}
	}
	return riverTuning{workers: 128, conns: 8, cooldown: 50 * time.Millisecond, poll: 100 * time.Millisecond,
		steady: true}
}

// Prepare migrates and inserts the jobs with COPY.
func (riverPeer) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := createInstances(ctx, db, c); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(db),
		&rivermigrate.Config{Schema: c.Schema(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if c.Workload == Latency {
		return nil
	}
	client, err := river.NewClient(riverpgxv5.New(db),
		&river.Config{Schema: c.Schema(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return riverFill(ctx, client, c)
}

const riverCopy = 5000 // jobs in one COPY

func riverFill(ctx context.Context, client *river.Client[pgx.Tx], c Case) error {
	var jobs []river.InsertManyParams
	insert := func() error {
		_, err := client.InsertManyFast(ctx, jobs)
		jobs = jobs[:0]
		return err
	}
	for m := range c.Charges() {
		jobs = append(jobs, river.InsertManyParams{Args: m,
			InsertOpts: &river.InsertOpts{Queue: riverWork, Metadata: newHeader()}})
		if len(jobs) == riverCopy {
			if err := insert(); err != nil {
				return err
			}
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	return insert()
}

// Work starts a client without a queue, which elects itself and prepares; with the queue it begins to fetch.
func (p riverPeer) Work(ctx context.Context, w *Worker) error {
	tuning := p.tuning(w.Workload)
	pool, err := riverPool(ctx, w.DSN, tuning)
	if err != nil {
		return err
	}
	defer pool.Close()
	worker := &riverWorker{w: w, pool: pool, sql: statements(tablesSQL, w.Schema()), done: make(chan struct{})}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	worker.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: w.Schema(), Logger: slog.New(slog.DiscardHandler), Workers: workers, SkipUnknownJobCheck: true,
		Queues:        map[string]river.QueueConfig{"none": {MaxWorkers: 1}},
		FetchCooldown: tuning.cooldown, FetchPollInterval: tuning.poll,
	})
	if err != nil {
		return err
	}
	if err := worker.client.Start(ctx); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	if err := worker.client.Queues().Add(riverWork, river.QueueConfig{MaxWorkers: tuning.workers}); err != nil {
		return err
	}
	return errors.Join(worker.wait(ctx), worker.client.Stop(ctx))
}

func riverPool(ctx context.Context, dsn string, tuning riverTuning) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = tuning.conns
	if tuning.steady {
		steadyPlans(&config.ConnConfig.Config)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// riverWorker works the jobs of the kind order.charge.
type riverWorker struct {
	river.WorkerDefaults[Charge]
	w      *Worker
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	sql    map[string]string

	handled atomic.Int64
	failed  atomic.Pointer[error]
	done    chan struct{} // closed once every job was handled
}

// Work is one job: a transaction that completes it, changes the instance and inserts the next job.
func (r *riverWorker) Work(ctx context.Context, job *river.Job[Charge]) error {
	var err error
	if r.w.Workload != Leased { // there River completes the job by itself, in batches
		err = r.handle(ctx, job)
	}
	if err == nil && r.w.Workload == Latency {
		err = r.w.Handled(job.Args)
	}
	if err != nil {
		r.failed.CompareAndSwap(nil, &err)
		return err
	}
	if r.handled.Add(1) == int64(r.w.N) {
		close(r.done)
	}
	return nil
}

func (r *riverWorker) handle(ctx context.Context, job *river.Job[Charge]) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		// The job is completed first: the instance, which others wait for, is locked one round trip shorter.
		if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
			return fmt.Errorf("complete job %d: %w", job.ID, err)
		}
		if r.w.Workload == Latency {
			return nil
		}
		send := func(next Charged) error {
			_, err := r.client.InsertTx(ctx, tx, next, &river.InsertOpts{Queue: riverSink, Metadata: job.Metadata})
			return err
		}
		return lockedIn(ctx, tx, r.sql, send).step(job.Args)
	})
}

// wait sends if the workload requires it, and returns once every job was handled or one has failed.
func (r *riverWorker) wait(ctx context.Context) error {
	if r.w.Workload == Latency {
		err := r.w.SendAll(ctx, func(ctx context.Context, m Charge) error {
			_, err := r.client.Insert(ctx, m, &river.InsertOpts{Queue: riverWork, Metadata: newHeader()})
			return err
		})
		if err != nil {
			return err
		}
	}
	for {
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
			if err := r.failed.Load(); err != nil {
				return *err
			}
		}
	}
}

// Effects counts the effects of the run.
func (riverPeer) Effects(ctx context.Context, db *pgxpool.Pool, c Case) (Effects, error) {
	return readEffects(ctx, db, statements(riverSQL, c.Schema())["effects"])
}
