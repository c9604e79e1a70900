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
)

const usage = `Order runs a shop of sagas for a while, with failures, and proves that every order had each effect exactly once.

  go run ./examples/order [flags]

The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries.
The exit code is 0 when all orders are right, 1 otherwise, and 2 for wrong flags.

Flags:
`

// settings are the flags.
type settings struct {
	orders, rate int
	payWithin    time.Duration
	within       time.Duration
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
		_, _ = fmt.Fprintf(complaints, "order: %v\nRun with -h for help.\n", err)
		return 2
	}
	if err := open(ctx, s, out); err != nil {
		_, _ = fmt.Fprintln(complaints, "order:", err)
		return 1
	}
	return 0
}

func readFlags(args []string, help io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("order", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by start
	f.IntVar(&s.orders, "orders", 8000, "how `many` orders are placed")
	f.IntVar(&s.rate, "rate", 400, "how many orders are placed a `second`, at least 20")
	f.DurationVar(&s.payWithin, "pay-within", 3*time.Second, "how long an order waits for its money")
	f.DurationVar(&s.within, "within", 2*time.Minute, "how long all orders may take to end")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprint(help, usage)
			f.SetOutput(help)
			f.PrintDefaults()
		}
		return s, err
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("there is no argument %q, only flags", f.Arg(0))
	case s.orders < 1:
		err = fmt.Errorf("-orders %d: want 1 or more", s.orders)
	case s.rate < ticks:
		err = fmt.Errorf("-rate %d: want %d or more", s.rate, ticks)
	case s.payWithin < 100*time.Millisecond || s.within <= 0:
		err = errors.New("-pay-within wants 100ms or more, and -within more than 0")
	}
	return s, err
}
