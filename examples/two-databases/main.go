package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/edda-go/edda/internal/demo"
)

const usage = `Two-databases runs two services, each with a Postgres server of its own, which talk over NATS JetStream:
orders are placed in one database and paid in the other.

  go run . [flags]

Both servers are thrown away at the end. They are made from installed binaries of Postgres; the broker is part of
this program. The exit code is 0 when every order that was placed was paid once or declined once, with the right
sum, and shipped once if paid, and when nothing is left anywhere; 1 otherwise; and 2 for wrong flags.

Flags:
`

// settings are the flags.
type settings struct {
	seconds, rate int
	seed          uint64
}

func (s settings) lasting() time.Duration { return time.Duration(s.seconds) * time.Second }

func main() {
	cluster.RunNode() // never returns in a node of the broker
	os.Exit(start(os.Args[1:], os.Stdout, os.Stderr))
}

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	s := settings{}
	return demo.Program{
		Name: "two-databases", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.seconds, "seconds", 30, "how `long` orders are placed")
			f.IntVar(&s.rate, "rate", 5, "`orders` a second")
			f.Uint64Var(
				&s.seed,
				"seed",
				rand.Uint64N(1_000_000),
				"a `number` that decides who is killed when; each run "+
					"has another by default",
			)
		},
		Check: func() error { return s.check() },
		Run:   func(ctx context.Context) error { return look(ctx, s, out) },
	}.Start(args, out, complaints)
}

func (s settings) check() error {
	switch {
	case s.seconds < 1 || s.seconds > 86_400:
		return fmt.Errorf("-seconds %d: want 1 to 86400", s.seconds)
	case s.rate < 1 || s.rate > 1000:
		return fmt.Errorf("-rate %d: want 1 to 1000", s.rate)
	}
	return nil
}

// errWrong is the answer of the check: the exit code is 1.
var errWrong = errors.New("not every order is as it should be")
