package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/demo/pages"
	"github.com/edda-go/edda/internal/demo/world"
)

const usage = `Ui shows the pages of Edda over a shop in which much is wrong.

  go run ./examples/ui [flags]

Flags:
`

// settings are the flags.
type settings struct {
	address string
	world   string
}

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	s := settings{}
	return demo.Program{
		Name: "ui", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&s.address, "address", "127.0.0.1:7433", "where to listen; port 0 is a free one")
			f.StringVar(&s.world, "world", "shop", "what to show: "+world.Names())
		},
		Check: func() error { return world.Check(s.world) },
		Run:   func(ctx context.Context) error { return open(ctx, s, out) },
	}.Start(args, out, complaints)
}

func open(ctx context.Context, s settings, out io.Writer) error {
	return demo.WithDatabase(ctx, "ui", "", func(d *demo.Database) error {
		w, err := world.Open(ctx, d.Pool, d.Edda, s.world)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		if !w.Labels.IsZero() {
			_, _ = fmt.Fprintf(out, "a conversation: /conversations/%s\n", w.Labels)
		}
		site, err := pages.Open(ctx, s.address, d.Pool, d.Edda, w.Sagas...)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "in a shell: DATABASE_URL=%s EDDA_SCHEMA=%s edda queue list\n", d.DSN, d.Edda)
		_, _ = fmt.Fprintf(out, "the pages: %s\n", site.URL())
		return site.Wait()
	})
}
