//go:build bouncer

package bouncer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// workerSpec makes this test binary a process that works behind PgBouncer.
type workerSpec struct {
	DSN, Schema string
	Tasks       bool // it hosts one endpoint with sixteen workers, and nothing else
}

const workerVariable = "EDDA_BOUNCER_WORKER"

// isWorker works, when this process is to, until SIGTERM, or until its parent is gone.
func isWorker() bool {
	text := os.Getenv(workerVariable)
	if text == "" {
		return false
	}
	spec := workerSpec{}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		log.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := spec.work(ctx); err != nil {
		log.Fatal(err)
	}
	return true
}

// work hosts one endpoint of each kind, and a scheduler.
func (s workerSpec) work(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = 6
	if s.Tasks {
		config.MaxConns = taskWorkers
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := bus.New(pool, bus.Options{Schema: s.Schema, AutoInstall: true, Wakeup: bus.PollOnly, Logger: logger})
	if err != nil {
		return err
	}
	if s.Tasks {
		return s.runTasks(ctx, b)
	}
	var runners []edda.Runner
	for _, make := range loadParts(b, pgx.Identifier{s.Schema, "effect"}.Sanitize()) {
		r, err := make()
		if err != nil {
			return err
		}
		runners = append(runners, r)
	}
	o := scheduler.Options{Owner: "load", PollOnly: true, Logger: logger,
		Evaluate: 300 * time.Millisecond, Dispatch: 200 * time.Millisecond}
	sched, err := scheduler.New(b, o, scheduler.Manifest{Name: "often", When: scheduler.Every(time.Second),
		Message: tick{}})
	if err != nil {
		return err
	}
	host, err := edda.NewHost(append(runners, sched)...)
	if err == nil {
		err = host.Install(ctx)
	}
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

const taskWorkers = 16

// runTasks has handlers that take so long that sessions, and not processors, are what is short.
func (s workerSpec) runTasks(ctx context.Context, b *bus.Bus) error {
	insert := "INSERT INTO " + pgx.Identifier{s.Schema, "effect"}.Sanitize() +
		" (key, n) SELECT $1, $2 FROM pg_sleep(0.02)"
	e, err := bus.NewEndpoint(b, "tasks", bus.EndpointOptions{Concurrency: taskWorkers, Poll: quickly,
		MaxCrashes: 1000},
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
			_, err := tx.Exec(ctx, insert, m.Key, m.N)
			return err
		}))
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// worker is such a process.
type worker struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *lines
	once sync.Once
}

// lines is what a process has said. Safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

// tail is how they end.
func (l *lines) tail() string {
	all := l.all()
	return strings.Join(all[max(0, len(all)-30):], "\n")
}

func (w *world) worker() *worker { return w.process(workerSpec{DSN: w.dsn(), Schema: w.schema}) }

func (w *world) process(s workerSpec) *worker {
	w.t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &worker{t: w.t, cmd: exec.Command(os.Args[0]), said: &lines{}}
	p.cmd.Env = append(os.Environ(), workerVariable+"="+string(spec))
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.end(syscall.SIGKILL) })
	return p
}

// end sends the signal, waits, and tells how it ended.
func (p *worker) end(how syscall.Signal) (err error) {
	p.once.Do(func() {
		if err = p.cmd.Process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return
		}
		err = p.cmd.Wait()
	})
	return err
}
