package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/procs"
)

const usage = `Scheduled shows the scheduler on two server processes, kills one of them, and counts what came of it.

  go run ./examples/scheduled [flags]

Four currencies are settled each night, two at a time (a strict group), by a saga; a report follows each settlement;
a poller runs every five seconds; one manifest fails for good and is held. A night lasts ten seconds here: the
settlements are due by a cron expression with seconds, in the time of Oslo. In the middle the server that evaluates
is killed (SIGKILL), and started again.

The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries. The
program works in schemas of its own there, and removes them.

The exit code is 0 when each due time has one run and one effect, the group of two was never exceeded, the reports
came after their settlements, and the manifest that fails has one run and is held; 1 otherwise; and 2 for wrong
flags.

Flags:
`

// settings are the flags.
type settings struct{ lasting, night time.Duration }

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program, as a server or as the parent of servers. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	if procs.IsWorker(serverVariable) {
		if err := serve(context.Background()); err != nil {
			_, _ = fmt.Fprintln(complaints, "scheduled:", err)
			return 1
		}
		return 0
	}
	s := settings{}
	return demo.Program{
		Name: "scheduled", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.lasting, "for", 40*time.Second, "how long anything is due; what is due then is still done")
			f.DurationVar(&s.night, "night", 10*time.Second,
				"how often it is night: whole seconds that divide a minute")
		},
		Check: func() error { return s.check() },
		Run:   func(ctx context.Context) error { return perform(ctx, s, out) },
	}.Start(args, out, complaints)
}

func (s settings) check() error {
	switch {
	case s.night < 2*time.Second || s.night > 30*time.Second || time.Minute%s.night != 0 || s.night%time.Second != 0:
		return fmt.Errorf("-night %v: want 2s to 30s, whole seconds that divide a minute", s.night)
	case s.lasting < 3*s.night || s.lasting > 10*time.Minute:
		return fmt.Errorf("-for %v: want three nights (%v) to 10m", s.lasting, 3*s.night)
	}
	return nil
}
