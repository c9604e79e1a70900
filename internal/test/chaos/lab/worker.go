package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Worker is what a worker process is started with.
type Worker struct {
	Scenario string
	Name     string // in the ledger and in pg_stat_activity
	DSN      string
	Task     json.RawMessage // what the scenario says, see Read

	Calm chan struct{} `json:"-"` // closed when the parent says that the breaking is over
	once sync.Once
}

// hear is called with what the parent writes, which is one word only.
func (w *Worker) hear(string) { w.once.Do(func() { close(w.Calm) }) }

// Read reads the task.
func (w *Worker) Read(task any) error {
	if err := json.Unmarshal(w.Task, task); err != nil {
		return fmt.Errorf("read the task of worker %s: %w", w.Name, err)
	}
	return nil
}

// Log writes to standard error, from the level on.
func Log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// Pool opens a pool whose sessions carry the worker's name. role is who connects; "" is the owner of the database.
func (w *Worker) Pool(ctx context.Context, role string) (*pgxpool.Pool, error) {
	return OpenPool(ctx, w.DSN, w.Name, role)
}

// OpenPool opens a pool whose sessions carry the name.
func OpenPool(ctx context.Context, dsn, name, role string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	if role != "" {
		config.ConnConfig.User, config.MaxConns = role, 12
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Serve opens a pool and a bus and runs what build makes of them, until ctx ends.
func (w *Worker) Serve(ctx context.Context, build func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error)) error {
	pool, err := w.Pool(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{Logger: Log(slog.LevelError)})
	if err != nil {
		return err
	}
	runners, err := build(b, pool)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(runners...)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

// Persist runs each of them until ctx ends. One that ends because the database was away runs again, as under a
// supervisor.
func Persist(ctx context.Context, log *slog.Logger, runners ...edda.Runner) {
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := r.Run(ctx); err != nil {
					log.Warn("it ended, and runs again", "runner", fmt.Sprintf("%T", r), "error", err)
				}
				_ = run.Sleep(ctx, 50*time.Millisecond) // its end is the loop's
			}
		})
	}
	all.Wait()
}
