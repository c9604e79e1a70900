package main

import (
	"log/slog"

	"github.com/edda-go/edda/internal/uihost"
	"github.com/spf13/cobra"
)

// uiCommand serves the pages of package eddaui.
func (t *tool) uiCommand() *cobra.Command {
	o := uihost.Options{}
	c := &cobra.Command{
		Use: "ui", Short: "Serve pages that show all of this in a browser",
		Long: `Serve pages that show endpoints, sagas, messages, dead letters, schedules, limits and processes, and that
follow what happens. They read with at most four connections that cannot write, each statement for ten seconds at most.
They have buttons for what the other commands change, with the same entries in the audit; with --read-only they have
none.

Without --auth the pages are for this machine: the address that is printed has a token that works once, and gives the
browser a cookie. With --auth basic:FILE they ask for a name and a password; FILE has lines NAME:PASSWORD, and only its
owner may read it. With --auth header:NAME a proxy has done so, and says who it is in that header; it runs on this
machine, or in the networks behind an @. Programs embed the same pages: package eddaui.`,
		Example: `  edda ui
  edda ui --listen 127.0.0.1:0 --read-only
  edda ui --listen 0.0.0.0:7433 --auth basic:/etc/edda/users
  edda ui --listen 10.0.0.5:7433 --auth header:X-Forwarded-User@10.0.0.0/24`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			o.Schema, o.Out, o.Actor = t.schemaName(), t.out, actorName()
			o.Log = slog.New(slog.NewTextHandler(t.err, nil))
			host, err := uihost.New(o)
			if err != nil {
				return usage(c, err)
			}
			ctx, _, err := t.openWithin(c.Context(), 0)
			if err != nil {
				return err
			}
			return host.Serve(ctx, t.pool)
		},
	}
	c.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:7433", "address and port; port 0 is a free one")
	c.Flags().StringVar(&o.Auth, "auth", "", "basic:FILE, or header:NAME; without it only this machine is served")
	c.Flags().BoolVar(&o.ReadOnly, "read-only", false, "nobody may change anything")
	return c
}
