package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/procs"
)

const usage = `Remote runs a shop with a database and a worker without one, which makes the invoices that the shop's
schedule wants. They talk over NATS JetStream. One of the two is killed every few seconds.

  go run . [flags]

The database is thrown away at the end. It is made from installed binaries of Postgres; the broker is part of this
program. The exit code is 0 when every run has succeeded and has its invoice; 1 otherwise; and 2 for wrong flags.

Flags:
`

// settings are the flags.
type settings struct {
	lasting time.Duration
	kills   bool
}

func main() {
	cluster.RunNode() // never returns in a node of the broker
	if procs.IsWorker(roleVariable) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if err := play(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "remote:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(start(os.Args[1:], os.Stdout, os.Stderr))
}

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	s := settings{}
	return demo.Program{
		Name: "remote", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.lasting, "for", 30*time.Second, "how `long` the schedule runs")
			f.BoolVar(&s.kills, "kills", true, "kill the shop or the worker every few seconds")
		},
		Check: func() error { return s.check() },
		Run:   func(ctx context.Context) error { return show(ctx, s, out) },
	}.Start(args, out, complaints)
}

func (s settings) check() error {
	if s.lasting < time.Second || s.lasting > 24*time.Hour {
		return fmt.Errorf("-for %v: want 1s to 24h", s.lasting)
	}
	return nil
}

// errWrong is the answer of the check: the exit code is 1.
var errWrong = errors.New("not every run is as it should be")
