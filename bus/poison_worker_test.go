package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// innocent is handled, and leaves one effect.
type innocent struct{ Key string }

// killer ends the process that handles it.
type killer struct{ How, Key string }

// charge has an effect outside of Edda's transaction. The first time, the process dies right after the effect.
type charge struct{}

func (innocent) Kind() string { return "poison.innocent" }
func (charge) Kind() string   { return "poison.charge" }
func (killer) Kind() string   { return "poison.killer" }

// die ends the process.
func (k killer) die() {
	switch k.How {
	case "exit":
		os.Exit(7)
	case "fatal":
		log.SetOutput(io.Discard)
		log.Fatal("this is the end")
	case "panic":
		go func() { panic("in a goroutine of the handler's own") }()
	case "kill": // as the kernel does when it is out of memory
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	select {} // the process is about to be gone
}

// workerSpec makes this test binary a worker process.
type workerSpec struct {
	DSN, Schema, Role string
	Wakeup            bus.Wakeup
	Concurrency       int
	MaxCrashes        int
	Leased            bool         // handlers outside of transactions, with a lease of a second
	Ordered           bus.Ordering // of a leased endpoint, by Key
	Relay             bool         // no endpoint: see relay_worker_test.go

	Ended func() `json:"-"` // is called in the test's process when a worker has ended, before the next begins
}

const workerVariable = "EDDA_POISON_WORKER"

// isWorker reports whether this process is a worker, and runs it. It ends by a killer, by SIGTERM in order, or with its
// parent.
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
	if err := spec.run(ctx); err != nil {
		log.Fatal(err)
	}
	return true
}

func (s workerSpec) run(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = 8
	pgtest.Become(config, s.Role)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	logs := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := bus.New(pool, bus.Options{Schema: s.Schema, Logger: logs,
		Wakeup: pgtest.IfPooled(bus.PollOnly, s.Wakeup)})
	if err != nil {
		return err
	}
	if s.Relay {
		r, err := s.relay(pool, b)
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}
	o, parts := bus.EndpointOptions{MaxCrashes: s.MaxCrashes, Concurrency: s.Concurrency}, s.parts()
	if s.Leased {
		o.Lease, o.Poll, o.Ordered, parts = time.Second, 50*time.Millisecond, s.Ordered, s.leasedParts(pool)
	}
	e, err := bus.NewEndpoint(b, "poisoned", o, parts...)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

func (s workerSpec) parts() []bus.Part {
	effect := "INSERT INTO " + pgx.Identifier{s.Schema, "effect"}.Sanitize() + " (id) VALUES ($1)"
	return []bus.Part{
		bus.HandleTx(func(c *bus.Context, tx pgx.Tx, _ innocent) error {
			_, err := tx.Exec(c, effect, c.Info().ID)
			return err
		}),
		bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, k killer) error { k.die(); return nil }),
	}
}

func (s workerSpec) leasedParts(pool *pgxpool.Pool) []bus.Part {
	effect := "INSERT INTO " + pgx.Identifier{s.Schema, "effect"}.Sanitize() + " (id) VALUES ($1)"
	one := func(c *bus.Context, _ innocent) error {
		_, err := pool.Exec(c, effect, c.Info().ID)
		return err
	}
	die := func(_ *bus.Context, k killer) error { k.die(); return nil }
	if s.Ordered != bus.Unordered {
		return []bus.Part{
			bus.Handle(one, bus.KeyedBy(func(m innocent) string { return m.Key })),
			bus.Handle(die, bus.KeyedBy(func(k killer) string { return k.Key })),
		}
	}
	return []bus.Part{bus.Handle(one), bus.Handle(die), bus.Handle(s.chargeOnce(pool))}
}

// chargeOnce is a handler like a user's whose effect is in tables of his own, outside of the message's transaction: the
// transaction of the effect inserts the message's id, and if the id exists, the handler does nothing.
func (s workerSpec) chargeOnce(pool *pgxpool.Pool) func(*bus.Context, charge) error {
	table := func(name string) string { return pgx.Identifier{s.Schema, name}.Sanitize() }
	return func(ctx *bus.Context, _ charge) error {
		ctx.Send(innocent{})
		fresh := false
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "INSERT INTO "+table("charged")+" (message) VALUES ($1) ON CONFLICT DO NOTHING",
				ctx.Info().ID)
			if fresh = tag.RowsAffected() == 1; err != nil || !fresh {
				return err
			}
			_, err = tx.Exec(ctx, "UPDATE "+table("account")+" SET balance = balance - 1")
			return err
		})
		if err == nil && fresh {
			killer{How: "exit"}.die()
		}
		return err
	}
}

// supervised is a set of worker processes that are started again when they end, as an orchestrator does.
type supervised struct {
	w    *world
	spec workerSpec
	over chan struct{}
	all  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	alive  map[*exec.Cmd]io.Closer
	deaths int
	said   []string
}

const restartAfter = 50 * time.Millisecond

// supervise starts n worker processes.
func (w *world) supervise(n int, spec workerSpec) *supervised {
	w.t.Helper()
	spec.Schema, spec.Role = w.schema, w.role
	if spec.DSN == "" {
		spec.DSN = pgtest.DSN(w.t)
	}
	s := &supervised{w: w, spec: spec, over: make(chan struct{}), alive: map[*exec.Cmd]io.Closer{}}
	for range n {
		s.all.Go(s.keepOne)
	}
	w.t.Cleanup(s.stop)
	return s
}

func (s *supervised) keepOne() {
	for {
		select {
		case <-s.over:
			return
		default:
		}
		s.live()
		if s.spec.Ended != nil {
			s.spec.Ended()
		}
		select {
		case <-s.over:
			return
		case <-time.After(restartAfter):
		}
	}
}

// live runs one process to its end.
func (s *supervised) live() {
	spec, err := json.Marshal(s.spec)
	if err != nil {
		s.w.t.Error(err)
		return
	}
	var out tail
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), workerVariable+"="+string(spec))
	c.Stderr = &out
	stdin, err := c.StdinPipe()
	if err == nil {
		s.mu.Lock()
		if err = c.Start(); err == nil {
			s.alive[c] = stdin
		}
		s.mu.Unlock()
	}
	if err != nil {
		s.w.t.Error(err)
		return
	}
	err = c.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.alive, c)
	if err != nil {
		s.deaths++
	}
	s.said = append(s.said, fmt.Sprintf("process %d ended: %v\n%s", c.Process.Pid, err, out.text))
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-40000):]
	return len(p), nil
}

// kill sends SIGKILL to one process.
func (s *supervised) kill() (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.alive {
		return c.Process.Kill() == nil
	}
	return false
}

// died returns the number of processes that ended without a request.
func (s *supervised) died() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths
}

// exited returns the number of processes that ended with this text.
func (s *supervised) exited(how string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.said {
		if first, _, _ := strings.Cut(line, "\n"); strings.HasSuffix(first, how) {
			n++
		}
	}
	return n
}

// stop ends all processes in order.
func (s *supervised) stop() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
	s.mu.Lock()
	for c := range s.alive {
		_ = c.Process.Signal(syscall.SIGTERM)
	}
	s.mu.Unlock()
	s.all.Wait()
	if s.w.t.Failed() {
		for _, line := range s.said {
			s.w.t.Log(line)
		}
	}
}
