package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `Web is a shop whose pages follow an order while it is paid, packed and shipped.

  go run ./examples/web [flags]

The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries. Ctrl-C ends it.

Flags:
`

// settings are the flags.
type settings struct {
	address string
	pause   time.Duration
}

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := readFlags(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(complaints, "web: %v\nRun with -h for help.\n", err)
		return 2
	}
	if err := open(ctx, s, out); err != nil {
		_, _ = fmt.Fprintln(complaints, "web:", err)
		return 1
	}
	return 0
}

func readFlags(args []string, help io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("web", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by start
	f.StringVar(&s.address, "address", "127.0.0.1:8080", "where to listen; port 0 is a free one")
	f.DurationVar(&s.pause, "pause", 2*time.Second, "how long the bank and the warehouse take, about")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprint(help, usage)
			f.SetOutput(help)
			f.PrintDefaults()
		}
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("there is no argument %q, only flags", f.Arg(0))
	}
	if s.pause < 0 {
		return s, fmt.Errorf("-pause %v: want 0 or more", s.pause)
	}
	return s, nil
}

// open opens the shop, and closes it when ctx ends.
func open(ctx context.Context, s settings, out io.Writer) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed already where a server had it
	return withDatabase(ctx, func(d database) error {
		p, err := newProgram(d, s.pause, listener)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "The shop is open at http://%s/ (Ctrl-C closes it)\n", listener.Addr())
		return p.run(ctx)
	})
}
