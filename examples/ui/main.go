package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/demo/world"
	"github.com/edda-go/edda/internal/run"
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
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed already where a server had it
	return demo.WithDatabase(ctx, "ui", "", func(d *demo.Database) error {
		w, err := world.Open(ctx, d.Pool, d.Edda, s.world)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		if !w.Labels.IsZero() {
			_, _ = fmt.Fprintf(out, "a conversation: /conversations/%s\n", w.Labels)
		}
		return serve(ctx, d, w, listener, out)
	})
}

// serve serves the pages until ctx ends.
func serve(ctx context.Context, d *demo.Database, w *world.Stage, listener net.Listener, out io.Writer) error {
	//nolint:contextcheck // it connects when the first page is read
	ui, err := eddaui.New(d.Pool, eddaui.Options{
		Schema: d.Edda, Sagas: w.Sagas,
		Authorize: func(r *http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Name: "visitor", From: r.RemoteAddr, May: eddaui.Look | eddaui.Bodies}, nil
		},
	})
	if err != nil {
		return err
	}
	defer ui.Close()
	mux := http.NewServeMux()
	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(ui.Close)
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return server.Shutdown(ending)
	})
	group.Go(func(context.Context) error {
		_, _ = fmt.Fprintf(out, "in a shell: DATABASE_URL=%s EDDA_SCHEMA=%s edda queue list\n", d.DSN, d.Edda)
		_, _ = fmt.Fprintf(out, "the pages: http://%s/edda/\n", listener.Addr())
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return group.Wait()
}
