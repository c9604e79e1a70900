package eddadev

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/ui/host"
	"github.com/edda-go/edda/migrations"
)

const (
	// PagesVariable names the environment variable with the address of the pages, like 127.0.0.1:8000; "off" is no
	// pages. Without it they listen on 127.0.0.1:7433, or on a free port if that is taken.
	PagesVariable = "EDDA_PAGES"

	noPages = "off"
)

// Run makes the tables of b, installs the runners, serves the pages and runs the runners until ctx ends. It prints the
// address of the pages to the standard error. If a different program has started the private Postgres and ends, Run
// starts it again. Run returns nil after a clean end; else an error of migrations.Up, Host.Install, Host.Run or the
// pages' listener.
func Run(ctx context.Context, b *bus.Bus, runners ...edda.Runner) error {
	host, err := edda.NewHost(runners...)
	if err != nil {
		return err
	}
	pool, schema := b.Database()
	if err := migrations.Up(ctx, pool, migrations.Options{Schema: schema}); err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	group := run.NewGroup(ctx)
	if listen := os.Getenv(PagesVariable); listen != noPages {
		pages, err := uihost.New(uihost.Options{Schema: schema, Listen: listen, Out: os.Stderr, Log: slog.Default()})
		if err != nil {
			return fmt.Errorf("%s: %w", PagesVariable, err)
		}
		group.Go(func(ctx context.Context) error {
			if err := pages.Serve(ctx, uihost.Database{Pool: pool}); err != nil {
				return fmt.Errorf("%s: %w", PagesVariable, err)
			}
			return nil
		})
	}
	group.Go(func(ctx context.Context) error { return lookForWaiting(ctx, pool, schema) })
	for _, s := range joined() {
		group.Go(func(ctx context.Context) error { return keepUp(ctx, s) })
	}
	group.Go(func(ctx context.Context) error {
		defer group.Stop() // the pages end with the program
		return host.Run(ctx)
	})
	return group.Wait()
}
