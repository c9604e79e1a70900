package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/procs"
)

// settings are the flags.
type settings struct {
	labOptions
	workloads, phases []string
	point             string
	kills, restarts   int
	verbose, quick    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if procs.IsWorker(workerVariable) {
		exit(work(ctx))
		return
	}
	exit(crash(ctx, readFlags()))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

func readFlags() settings {
	s := settings{labOptions: labOptions{durable: true, out: os.Stdout}}
	workloads := flag.String("workload", "bare,sagas", "which handlers run")
	phases := flag.String("phase", strings.Join(phaseNames(), ","), "what is broken")
	flag.StringVar(&s.point, "point", "", "walk only here, twenty times: statement:before:n or statement:after:n")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "decides what is sent and where random faults strike")
	flag.IntVar(&s.workers, "workers", 3, "worker processes")
	flag.IntVar(&s.kills, "kills", 300, "random kills in flight")
	flag.IntVar(&s.restarts, "restarts", 10, "restarts of Postgres")
	flag.BoolVar(&s.verbose, "v", false, "print what workers say")
	flag.BoolVar(&s.quick, "quick", false, "a minute's worth of everything")
	flag.Parse()
	s.workloads, s.phases = strings.Split(*workloads, ","), strings.Split(*phases, ",")
	if s.quick {
		s.kills, s.restarts = min(s.kills, 20), min(s.restarts, 2)
	}
	return s
}

var errViolated = errors.New("the promise was broken")

// crash runs the phases, and reports all of them before it fails.
func crash(ctx context.Context, s settings) error {
	for _, name := range s.phases {
		if !slices.Contains(phaseNames(), name) {
			return fmt.Errorf("phase %q: want some of %s", name, strings.Join(phaseNames(), ","))
		}
	}
	begin := time.Now()
	_, _ = fmt.Fprintf(s.out, "crash: seed %d\n", s.seed)
	l, err := openLab(ctx, s.labOptions)
	if err != nil {
		return err
	}
	l.talkback = s.verbose
	err = l.runAll(ctx, s)
	if err == nil {
		_, _ = fmt.Fprintf(s.out, "crash: nothing lost, nothing doubled, no deadlock, in %v\n",
			time.Since(begin).Round(time.Second))
	}
	return errors.Join(err, l.close(context.WithoutCancel(ctx)))
}

func (l *lab) runAll(ctx context.Context, s settings) error {
	var outcome error
	for _, load := range s.workloads {
		if load := workload(load); load != bare && load != withSagas {
			return fmt.Errorf("workload %q: want %s or %s", load, bare, withSagas)
		}
		if err := l.use(ctx, workload(load)); err != nil {
			return err
		}
		for _, p := range phases {
			if !slices.Contains(s.phases, p.name) {
				continue
			}
			err := l.runPhase(ctx, p, s)
			if err != nil && !errors.Is(err, errViolated) {
				return fmt.Errorf("%s/%s: %w", load, p.name, err)
			}
			outcome = errors.Join(outcome, err)
		}
	}
	if outcome != nil {
		return errViolated
	}
	return nil
}
