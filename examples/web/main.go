package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/edda-go/edda/internal/demo"
)

const usage = `Web is a shop whose pages follow an order while it is paid, packed and shipped.

  go run ./examples/web [flags]

The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries. Ctrl-C
ends it.

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
	s := settings{}
	return demo.Program{
		Name: "web", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&s.address, "address", "127.0.0.1:8080", "where to listen; port 0 is a free one")
			f.DurationVar(&s.pause, "pause", 2*time.Second, "how long the bank and the warehouse take, about")
		},
		Check: func() error { return s.check() },
		Run:   func(ctx context.Context) error { return open(ctx, s, out) },
	}.Start(args, out, complaints)
}

func (s settings) check() error {
	if s.pause < 0 {
		return fmt.Errorf("-pause %v: want 0 or more", s.pause)
	}
	return nil
}

//go:embed tables.sql
var tables string

// open opens the shop, and closes it when ctx ends.
func open(ctx context.Context, s settings, out io.Writer) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed already where a server had it
	return demo.WithDatabase(ctx, "web", tables, func(d *demo.Database) error {
		p, err := newProgram(d, s.pause, listener)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "The shop is open at http://%s/ (Ctrl-C closes it)\n", listener.Addr())
		return p.run(ctx)
	})
}
