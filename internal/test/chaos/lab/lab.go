package lab

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed ledger.sql
var ledgerSQL string

// SQL reads the statements of a scenario. The server is the scenario's own, so Edda's schema has its usual name.
func SQL(text string) pg.Statements {
	schema, err := pg.ParseSchema(pg.DefaultSchema)
	if err != nil {
		panic(err)
	}
	return pg.Load(text, schema)
}

var statements = SQL(ledgerSQL)

// Lab is one run of a scenario, with a Postgres of its own.
type Lab struct {
	Settings
	Server *pgdev.Server
	Pool   *pgxpool.Pool
	Bus    *bus.Bus
	Crew   *Crew      // of a Trial
	Random *rand.Rand // of the goroutine that breaks things
	begun  time.Time
	notes  notes
}

// Open starts a Postgres with Edda's schema and an empty ledger.
func Open(ctx context.Context, s Settings, o pgdev.Options) (l *Lab, err error) {
	l = &Lab{
		Settings: s,
		Random:   rand.New(rand.NewPCG(s.Seed, 1)),
		begun:    time.Now(),
		notes:    notes{blows: map[string]int{}},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	o.Private = true
	if o.Settings == nil {
		o.Settings = map[string]string{"max_connections": "200"}
	}
	if l.Server, err = pgdev.Start(ctx, o); err != nil {
		return l, err
	}
	if l.Pool, err = Prepare(ctx, l.Server.DSN(), s.Scenario.SQL); err != nil {
		return l, err
	}
	l.Bus, err = bus.New(l.Pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	return l, err
}

// Prepare makes Edda's schema and the ledger in a database, and returns a pool to it.
func Prepare(ctx context.Context, dsn string, sql pg.Statements) (*pgxpool.Pool, error) {
	pool, err := OpenPool(ctx, dsn, "chaos", "")
	if err != nil {
		return nil, err
	}
	err = migrations.Up(ctx, pool, migrations.Options{})
	for _, create := range []string{statements.Get("ledger_create"), sql["create"]} {
		if err == nil && create != "" {
			_, err = pool.Exec(ctx, create, pgx.QueryExecModeSimpleProtocol)
		}
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("prepare the database: %w", err)
	}
	return pool, nil
}

// Close takes everything away.
func (l *Lab) Close() error {
	if l.Pool != nil {
		l.Pool.Close()
	}
	if l.Server != nil {
		return l.Server.Stop()
	}
	return nil
}

// Job describes a worker process of the scenario.
func (l *Lab) Job(name, dsn string, task any) procs.Job {
	text, err := json.Marshal(task)
	if err != nil {
		panic(err) // tasks are plain structs
	}
	w := &Worker{Scenario: l.Scenario.Name, Name: name, DSN: dsn, Task: text}
	j := procs.Job{Name: name, Variable: variable, Task: w}
	if l.Verbose {
		j.Stderr = os.Stderr
	}
	return j
}

// Printf prints a line of progress, with the time since the lab was opened.
func (l *Lab) Printf(format string, args ...any) {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	_, _ = fmt.Fprintf(l.Out, "%6.1f s  %s\n", time.Since(l.begun).Seconds(), fmt.Sprintf(format, args...))
}

// patience is how long a statement of the parent is tried again. The server may be down because the scenario has
// crashed it, or because it has lost its sessions: a preloaded library may end one of its processes.
const patience = 20 * time.Second

// Row runs a statement that returns one row.
func (l *Lab) Row(ctx context.Context, sql string, args []any, into ...any) error {
	return l.insist(ctx, func() error { return l.Pool.QueryRow(ctx, sql, args...).Scan(into...) })
}

// Exec runs a statement. It may be done twice when the server crashes.
func (l *Lab) Exec(ctx context.Context, sql string, args ...any) error {
	return l.insist(ctx, func() error {
		_, err := l.Pool.Exec(ctx, sql, args...)
		return err
	})
}

func (l *Lab) insist(ctx context.Context, try func() error) error {
	for end := time.Now().Add(patience); ; {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w; the server: %s", err, l.Server.LogTail())
		}
		if err := run.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// Await asks until the answer is yes, and fails when that takes longer than within.
func Await(ctx context.Context, within time.Duration, what string, ask func() (bool, error)) error {
	for end := time.Now().Add(within); ; {
		yes, err := ask()
		if err != nil || yes {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s did not happen within %v: %w", what, within, ErrBroken)
		}
		if err := run.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// Left counts the messages in all queues, those that wait in lanes included.
func (l *Lab) Left(ctx context.Context) (n int64, err error) {
	return n, l.Row(ctx, statements.Get("backlog"), nil, &n)
}

// Finish says in the ledger that the breaking is over, so that handlers take no time any more, and waits until every
// queue is empty.
func (l *Lab) Finish(ctx context.Context, within time.Duration) error {
	if err := l.Exec(ctx, statements.Get("calm")); err != nil {
		return err
	}
	return Await(ctx, within, "the end of all messages", func() (bool, error) {
		left, err := l.Left(ctx)
		return left == 0, err
	})
}

// Between is a random time from least to most.
func (l *Lab) Between(least, most time.Duration) time.Duration {
	return least + time.Duration(l.Random.Int64N(int64(most-least)+1))
}
