package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda/saga"
)

const usage = `Permits replays an event log through sagas, and compares the outcome with the log.

  go run ./examples/permits -log FILE [flags]           run, and check
  go run ./examples/permits -verify -log FILE [flags]   check a run again, from the file and the database alone

FILE is a CSV file with the columns case:concept:name, concept:name, time:timestamp and case:deadline.
The database is the one that DATABASE_URL names, or else a private Postgres, where each run begins anew.
The exit code is 0 when nothing was lost, doubled or different from the file, 1 otherwise, and 2 for wrong flags.

Flags:
`

// settings are the flags.
type settings struct {
	log, store, schema, cases string
	lasting                   time.Duration
	verify                    bool
}

func main() { os.Exit(start(os.Args[1:])) }

// start is the program. It returns the exit code.
func start(args []string) int {
	s, err := read(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "permits: %v\nRun with -h for help.\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	do := replay
	if s.verify {
		do = verify
	}
	if err := do(ctx, s); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "permits: %v\n", err)
		return 1
	}
	return 0
}

// read reads the flags, and prints what help asks for.
func read(args []string) (s settings, err error) {
	f := flag.NewFlagSet("permits", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by start
	f.StringVar(&s.log, "log", "", "the event log, a CSV `file`")
	f.StringVar(&s.store, "store", "pessimistic",
		"the `store` that keeps steps of one case apart: optimistic or pessimistic")
	f.DurationVar(&s.lasting, "for", time.Minute, "how long the replay takes, from the first event to the last")
	f.StringVar(&s.schema, "schema", "permits",
		"the `name` of the schema of this program's tables; the engine's schema has _edda behind the name")
	f.BoolVar(&s.verify, "verify", false, "do not run, check the tables of a run")
	f.StringVar(&s.cases, "cases", "", "write the last activity of each case to this CSV `file`")
	switch err = f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("there is no argument %q, only flags", f.Arg(0))
	case err == nil:
		err = s.check()
	}
	return s, err
}

func (s settings) check() error {
	switch {
	case s.log == "":
		return errors.New("-log is missing: name the event log")
	case s.store != "optimistic" && s.store != "pessimistic":
		return fmt.Errorf("-store %s: want optimistic or pessimistic", s.store)
	case s.lasting < time.Second || s.lasting > 24*time.Hour:
		return fmt.Errorf("-for %v: want 1s to 24h", s.lasting)
	case s.verify && os.Getenv("DATABASE_URL") == "":
		return errors.New("-verify reads a run that was kept: set DATABASE_URL to the database of that run")
	}
	return nil
}

func (s settings) sagaStore() saga.Store {
	if s.store == "optimistic" {
		return saga.Optimistic
	}
	return saga.Pessimistic
}
