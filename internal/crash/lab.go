package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/pgdev/faultproxy"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// labOptions are what the flags say.
type labOptions struct {
	seed    uint64
	workers int
	durable bool
	out     io.Writer
}

// lab is what a phase works with: a Postgres of our own, the slots of the workers, and a feeder.
type lab struct {
	labOptions
	server   *pgdev.Server
	pool     *pgxpool.Pool // straight to the server
	slots    []*slot
	workload workload

	feedPool  *pgxpool.Pool
	feedProxy *faultproxy.Proxy
	feeder    *feeder
	deadlocks deadlocks
	followers sync.WaitGroup // of the workers that have been started

	mu       sync.Mutex // guards found
	found    []violation
	talkback bool // print what workers say
}

func openLab(ctx context.Context, o labOptions) (*lab, error) {
	l := &lab{labOptions: o, workload: bare}
	var err error
	if l.server, err = pgdev.Start(ctx, pgdev.Options{Private: true, Durable: o.durable}); err != nil {
		return nil, err
	}
	if err := l.furnish(ctx); err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

func (l *lab) furnish(ctx context.Context) (err error) {
	if l.pool, err = pgxpool.New(ctx, l.server.DSN()); err != nil {
		return fmt.Errorf("open the parent's pool: %w", err)
	}
	if err := migrate.Up(ctx, l.pool, migrate.Options{Schema: schemaName}); err != nil {
		return err
	}
	if err := createLedger(ctx, l.pool); err != nil {
		return err
	}
	for no := range l.workers {
		s, err := newSlot(ctx, l, no+1)
		if err != nil {
			return err
		}
		l.slots = append(l.slots, s)
	}
	return l.openFeeder(ctx)
}

func (l *lab) openFeeder(ctx context.Context) error {
	backend, err := faultproxy.Backend(l.server.DSN())
	if err != nil {
		return err
	}
	if l.feedProxy, err = faultproxy.Listen(ctx, backend, faultproxy.Options{Seed: l.seed}); err != nil {
		return err
	}
	if l.feedPool, err = pgxpool.New(ctx, l.feedProxy.DSN(l.server.DSN())); err != nil {
		return fmt.Errorf("open the feeder's pool: %w", err)
	}
	l.feeder, err = newFeeder(l, l.feedPool)
	return err
}

func (l *lab) close(ctx context.Context) error {
	for _, s := range l.slots {
		s.stop(ctx)
	}
	l.followers.Wait()
	if l.feedPool != nil {
		l.feedPool.Close()
	}
	if l.feedProxy != nil {
		_ = l.feedProxy.Close()
	}
	if l.pool != nil {
		l.pool.Close()
	}
	return l.server.Stop()
}

// use installs the endpoints of a workload.
func (l *lab) use(ctx context.Context, load workload) error {
	l.workload = load
	w := &worker{Name: "parent", DSN: l.server.DSN(), Workload: load}
	endpoints, pool, err := w.open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, e := range endpoints {
		if err := e.Install(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin empties all tables and forgets what was found.
func (l *lab) begin(ctx context.Context) error {
	l.mu.Lock()
	l.found = nil
	l.mu.Unlock()
	if _, err := l.pool.Exec(ctx, statements.Get("crash_reset")); err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	return l.deadlocks.begin(ctx, l.pool)
}

// feed runs the feeder until stop is called, which waits for what it has begun.
func (l *lab) feed(ctx context.Context) (stop func() error) {
	feeding := run.NewGroup(ctx)
	feeding.Go(l.feeder.run)
	return func() error {
		feeding.Stop()
		return feeding.Wait()
	}
}

// ensure starts the workers that are not running.
func (l *lab) ensure() error {
	for _, s := range l.slots {
		if err := s.ensure(); err != nil {
			return err
		}
	}
	return nil
}

// drain lets the workers finish without any fault. What is left when the time is over is found by the checks.
func (l *lab) drain(ctx context.Context, within time.Duration) error {
	for _, s := range l.slots {
		s.proxy.Set()
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if err := l.ensure(); err != nil {
			return err
		}
		if n, err := number(ctx, l.pool, "crash_backlog"); err == nil && n == 0 {
			return nil
		}
		if run.Sleep(ctx, 20*time.Millisecond) != nil {
			return nil
		}
	}
}

// judge checks everything, and adds what the phase itself has found.
func (l *lab) judge(ctx context.Context) ([]violation, error) {
	found, err := check(ctx, l.pool)
	if err != nil {
		return nil, err
	}
	n, err := l.deadlocks.sum(ctx, l.pool)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found = append(found, l.found...)
	if n > 0 {
		found = append(found, violation{rule: "deadlocks", what: fmt.Sprintf("Postgres counted %d deadlocks", n)})
	}
	return found, nil
}

func (l *lab) violate(v violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = append(l.found, v)
}

// heard is told every line that a worker writes. A deadlock that Postgres forgot at a restart is still heard of.
func (l *lab) heard(worker, line string) {
	if strings.Contains(line, "40P01") {
		l.violate(violation{rule: "deadlocks", id: worker, what: worker + ": " + line})
	}
	if l.talkback {
		_, _ = fmt.Fprintln(l.out, "   ", worker, line)
	}
}

// retire kills all workers.
func (l *lab) retire(ctx context.Context) {
	for _, s := range l.slots {
		s.kill(ctx, retired)
	}
}
