package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/saga"
)

const usage = `Permits replays an event log through sagas, kills workers while they work, and counts what came of it.

  go run ./examples/permits -log FILE [flags]           run, and check
  go run ./examples/permits -verify -log FILE [flags]   check a run that was kept, from the file and the database alone

FILE is a CSV file with the columns case:concept:name, concept:name, time:timestamp and case:deadline.
The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries.
The exit code is 0 when nothing was lost, doubled or different from the file, 1 otherwise, and 2 for wrong flags.

Flags:
`

// settings are the flags.
type settings struct {
	log, store, schema string
	workers, kills     int
	lasting            time.Duration
	seed               uint64
	keep, verify       bool
	all                bool
	cases              string
}

func main() { os.Exit(start(os.Args[1:])) }

// start is the program, as a worker or as the parent of workers. It returns the exit code.
func start(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if procs.IsWorker(workerVariable) {
		return code(work(ctx))
	}
	s, err := readFlags(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "permits: %v\nRun with -h for help.\n", err)
		return 2
	case s.verify:
		return code(verify(ctx, s))
	default:
		return code(replay(ctx, s))
	}
}

func code(err error) int {
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "permits:", err)
		return 1
	}
	return 0
}

func readFlags(args []string, help io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("permits", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by start
	f.StringVar(&s.log, "log", "", "the event log, a CSV `file`")
	f.StringVar(&s.store, "store", "pessimistic", "the `store` that keeps steps of one case apart: optimistic or "+
		"pessimistic")
	f.IntVar(&s.workers, "workers", 3, "worker `processes`, 1 to 16")
	f.IntVar(&s.kills, "kill", 0, "how many `times` a worker is killed with a batch open")
	f.DurationVar(&s.lasting, "for", time.Minute, "how long the replay takes, from the first event to the last")
	f.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "a `number` that decides when and where kills strike; "+
		"each run has another by default")
	f.StringVar(&s.schema, "schema", "permits", "the `name` of the schema of this program's tables; the engine's "+
		"schema has _edda behind the name")
	f.BoolVar(&s.keep, "keep", false, "keep the tables, and tell how to verify them; with a throw-away server: "+
		"wait until Ctrl-C")
	f.BoolVar(&s.verify, "verify", false, "do not run, check the tables of a run that was kept")
	f.BoolVar(&s.all, "all", false, "print the last activity of each case, and not their counts")
	f.StringVar(&s.cases, "cases", "", "write the last activity of each case to this CSV `file`")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprint(help, usage)
			f.SetOutput(help)
			f.PrintDefaults()
		}
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("there is no argument %q: the log is given by -log", f.Arg(0))
	}
	return s, s.check()
}

func (s settings) check() error {
	switch {
	case s.log == "":
		return errors.New("-log is missing: name the event log")
	case s.store != "optimistic" && s.store != "pessimistic":
		return fmt.Errorf("-store %s: want optimistic or pessimistic", s.store)
	case s.workers < 1 || s.workers > 16:
		return fmt.Errorf("-workers %d: want 1 to 16", s.workers)
	case s.kills < 0:
		return fmt.Errorf("-kill %d: want 0 or more", s.kills)
	case s.lasting < time.Second || s.lasting > 24*time.Hour:
		return fmt.Errorf("-for %v: want 1s to 24h", s.lasting)
	case s.verify && os.Getenv("DATABASE_URL") == "":
		return errors.New("-verify reads a run that was kept: set DATABASE_URL to what that run printed")
	}
	return nil
}

func (s settings) sagaStore() saga.Store {
	if s.store == "optimistic" {
		return saga.Optimistic
	}
	return saga.Pessimistic
}
