package uihost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options of a host.
type Options struct {
	Schema   string
	Listen   string // address and port; port 0 is a free one
	Auth     string // "", basic:FILE, or header:NAME with trusted proxies behind an @
	Actor    string // who asks where nobody says who it is, for the audit; "" is "local"
	ReadOnly bool   // nobody may change anything
	Out      io.Writer
	Log      *slog.Logger
}

// ErrUsage says that options are wrong or contradict each other.
var ErrUsage = errors.New("wrong options")

const (
	lastRequests = 5 * time.Second // for requests that are under way at the end
	mostHeader   = 64 << 10
)

// Host serves the pages.
type Host struct {
	o      Options
	access *access
}

// New returns a host, or an ErrUsage. It reads the file of --auth, and does nothing else.
func New(o Options) (*Host, error) {
	a, err := newAccess(o)
	return &Host{o, a}, err
}

// Serve serves the pages of a schema until ctx ends. It prints the address to Options.Out when it listens.
func (h *Host) Serve(ctx context.Context, pool *pgxpool.Pool) error {
	o, a := h.o, h.access
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = listener.Close() }() // closed already where a server had it
	//nolint:contextcheck // it connects when the first page is read
	ui, err := eddaui.New(pool, eddaui.Options{Schema: o.Schema, Authorize: a.authorize,
		ReadOnly: o.ReadOnly, Log: o.Log})
	if err != nil {
		return err
	}
	defer ui.Close()
	server := &http.Server{
		Handler: a.guard(ui), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(ui.Close)
	if _, err := fmt.Fprintf(o.Out, "Edda's pages: %s\nCtrl-C ends them.\n", a.address(listener.Addr())); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequests)
		defer cancel()
		return server.Shutdown(ending)
	})
	group.Go(func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	return group.Wait()
}
