package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "crash", About: "workers killed at every statement, lost replies, cut connections, restarts of Postgres",
	Full:  lab.Size{Workers: 3, Kills: 300},
	Quick: lab.Size{Workers: 3, Kills: 20},
	Flags: func(f *flag.FlagSet) {
		f.StringVar(&flags.workloads, "workload", "bare,sagas", "crash: which handlers run")
		f.StringVar(&flags.phases, "phase", strings.Join(phaseNames(), ","), "crash: the phases to run")
		f.IntVar(&flags.restarts, "restarts", 10, "crash: restarts of Postgres")
	},
	SQL: sql, Rules: []string{"lost", "doubled", "untold", "deadlocks"},
	Run: crash, Work: work,
}

var flags struct {
	workloads, phases string
	restarts          int
}

// phase breaks things in one way while messages flow, and notes its figures.
type phase struct {
	name string
	run  func(ctx context.Context, a *arena) error
}

// phases returns them in the order in which they are run.
func phases() []phase {
	return []phase{
		{"walk", runWalk},
		{"replies", runReplies},
		{"cuts", runCuts},
		{"random", runRandom},
		{"restarts", runRestarts},
		{"history", runHistory},
	}
}

func phaseNames() (names []string) {
	for _, p := range phases() {
		names = append(names, p.name)
	}
	return names
}

// crash runs the phases of all workloads, and fails afterwards when one has.
func crash(ctx context.Context, s lab.Settings) error {
	for name := range strings.SplitSeq(flags.phases, ",") {
		if !slices.Contains(phaseNames(), name) {
			return fmt.Errorf("-phase %s: want some of %s", name, strings.Join(phaseNames(), ","))
		}
	}
	a, err := openArena(ctx, s)
	if err != nil {
		return err
	}
	var outcome error
	for load := range strings.SplitSeq(flags.workloads, ",") {
		err := a.runPhases(ctx, workload(load))
		outcome = errors.Join(outcome, err)
		if err != nil && !errors.Is(err, lab.ErrBroken) {
			break
		}
	}
	return errors.Join(outcome, a.close(context.WithoutCancel(ctx)))
}

func (a *arena) runPhases(ctx context.Context, load workload) (outcome error) {
	if err := a.use(ctx, load); err != nil {
		return err
	}
	for _, p := range phases() {
		if !strings.Contains(","+flags.phases+",", ","+p.name+",") {
			continue
		}
		err := a.runPhase(ctx, p)
		if err != nil && !errors.Is(err, lab.ErrBroken) {
			return fmt.Errorf("%s/%s: %w", load, p.name, err)
		}
		outcome = errors.Join(outcome, err)
	}
	return outcome
}

// runPhase begins with empty tables, breaks, lets everything come to rest, and judges.
func (a *arena) runPhase(ctx context.Context, p phase) error {
	begin := time.Now()
	if err := a.begin(ctx); err != nil {
		return err
	}
	stopFeed := a.feed(ctx)
	err := p.run(ctx, a)
	a.feeder.proxy.Set()
	if err := errors.Join(err, stopFeed(), ctx.Err()); err != nil {
		return err
	}
	if err := a.drain(ctx, time.Minute); err != nil {
		return err
	}
	if err := a.judge(ctx); err != nil {
		return err
	}
	a.retire(ctx)
	handled, err := a.number(ctx, "crash_handled")
	if err != nil {
		return err
	}
	a.Fact("handled", handled)
	a.Fact("in", time.Since(begin))
	err = a.Conclude(ctx, fmt.Sprintf("%s/%s", a.workload, p.name))
	if errors.Is(err, lab.ErrBroken) {
		_, _ = fmt.Fprintf(a.Out, "  again: -scenario crash -seed %d -workload %s -phase %s\n", a.Seed, a.workload,
			p.name)
	}
	return err
}

// arena is what a phase works with: a Postgres of our own, the slots of the workers, and a feeder.
type arena struct {
	*lab.Lab
	slots     []*slot
	workload  workload
	feeder    *feeder
	followers sync.WaitGroup // of the workers that have been started

	deadlocksBefore int  // those of the phases before
	holes           bool // the phase has taken parts of the history away
}

func openArena(ctx context.Context, s lab.Settings) (*arena, error) {
	l, err := lab.Open(ctx, s, pgdev.Options{Durable: true})
	if err != nil {
		return nil, err
	}
	a := &arena{Lab: l, workload: bare}
	if err := a.furnish(ctx); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	return a, nil
}

// furnish opens the slots and the feeder, each behind a proxy of its own.
func (a *arena) furnish(ctx context.Context) (err error) {
	backend, err := faultproxy.Backend(a.Server.DSN())
	if err != nil {
		return err
	}
	for no := range a.Workers {
		proxy, err := faultproxy.Listen(ctx, backend, faultproxy.Options{Seed: a.Seed + uint64(no) + 1})
		if err != nil {
			return err
		}
		a.slots = append(a.slots, &slot{arena: a, proxy: proxy, no: no + 1})
	}
	a.feeder, err = openFeeder(ctx, a, backend)
	return err
}

func (a *arena) close(ctx context.Context) error {
	for _, s := range a.slots {
		s.stop(ctx)
	}
	a.followers.Wait()
	if a.feeder != nil {
		a.feeder.pool.Close()
		_ = a.feeder.proxy.Close()
	}
	return a.Close()
}

// use installs the endpoints of a workload.
func (a *arena) use(ctx context.Context, load workload) error {
	if load != bare && load != withSagas {
		return fmt.Errorf("-workload %s: want %s or %s", load, bare, withSagas)
	}
	a.workload = load
	w := &worker{Name: "parent", Workload: load}
	quiet := slog.New(slog.DiscardHandler)
	endpoints, err := w.endpoints(a.Pool, quiet) //nolint:contextcheck // a handler is given its own context
	for _, e := range endpoints {
		if err == nil {
			err = e.Install(ctx)
		}
	}
	return err
}

// begin empties all tables and forgets what was found.
func (a *arena) begin(ctx context.Context) error {
	a.Forget()
	a.holes = false
	if _, err := a.Pool.Exec(ctx, sql.Get("crash_reset")); err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	var err error
	a.deadlocksBefore, err = a.deadlocks()
	return err
}

// feed runs the feeder until stop is called, which waits for what it has begun.
func (a *arena) feed(ctx context.Context) (stop func() error) {
	feeding := run.NewGroup(ctx)
	feeding.Go(a.feeder.run)
	return func() error {
		feeding.Stop()
		return feeding.Wait()
	}
}

// heal ends all faults.
func (a *arena) heal() {
	for _, s := range a.slots {
		s.proxy.Set()
	}
}

// ensure starts the workers that are not running.
func (a *arena) ensure() error {
	for _, s := range a.slots {
		if err := s.ensure(); err != nil {
			return err
		}
	}
	return nil
}

// drain lets the workers finish without any fault. What is left when the time is over is found by the checks.
func (a *arena) drain(ctx context.Context, within time.Duration) error {
	a.heal()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if err := a.ensure(); err != nil {
			return err
		}
		if n, err := a.Left(ctx); err == nil && n == 0 || run.Sleep(ctx, 20*time.Millisecond) != nil {
			return nil
		}
	}
}

// retire kills all workers.
func (a *arena) retire(ctx context.Context) {
	for _, s := range a.slots {
		s.kill(ctx, retired)
	}
}
