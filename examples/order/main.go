package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/edda-go/edda/internal/demo"
)

const usage = `Order runs a shop of sagas for a while, with failures, and proves that every order had each effect
exactly once.

  go run ./examples/order [flags]

With -memory there is no database. Otherwise it is the one that DATABASE_URL names, or else a throw-away server made
from installed binaries. Its pages are at the address that is printed; with -stay they are there until Ctrl-C.
The exit code is 0 when all orders are right, 1 otherwise, and 2 for wrong flags.

Flags:
`

// settings are the flags.
type settings struct {
	orders, rate int
	payWithin    time.Duration
	within       time.Duration
	memory       bool
	pages        string
	stay         bool
}

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	s := settings{}
	return demo.Program{
		Name: "order", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.orders, "orders", 8000, "how `many` orders are placed")
			f.IntVar(&s.rate, "rate", 400, "how many orders are placed a `second`, at least 20")
			f.DurationVar(&s.payWithin, "pay-within", 3*time.Second, "how long an order waits for its money")
			f.BoolVar(&s.memory, "memory", false, "run in memory, without a database")
			f.StringVar(&s.pages, "pages", "127.0.0.1:0", "where the pages listen: an `address`; port 0 is a free one")
			f.BoolVar(&s.stay, "stay", false, "serve the pages when all orders have ended, until Ctrl-C")
			f.DurationVar(&s.within, "within", 2*time.Minute, "how long all orders may take to end")
		},
		Check: func() error { return s.check() },
		Run:   func(ctx context.Context) error { return open(ctx, s, out) },
	}.Start(args, out, complaints)
}

func (s settings) check() error {
	switch {
	case s.orders < 1:
		return fmt.Errorf("-orders %d: want 1 or more", s.orders)
	case s.rate < ticks:
		return fmt.Errorf("-rate %d: want %d or more", s.rate, ticks)
	case s.stay && s.memory:
		return errors.New("-stay is for a shop with a database, which has pages")
	case s.payWithin < 100*time.Millisecond || s.within <= 0:
		return errors.New("-pay-within wants 100ms or more, and -within more than 0")
	}
	return nil
}
