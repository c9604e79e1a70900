package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/internal/ui/host"
	"github.com/edda-go/edda/migrations"
	"github.com/spf13/cobra"
)

// uiCommand serves the pages of package eddaui.
func (t *tool) uiCommand() *cobra.Command {
	o, databases := uihost.Options{}, []string{}
	c := &cobra.Command{
		Use: "ui", Short: "Serve pages for operators in a browser",
		Long: `Serve pages that show endpoints, sagas, messages, dead letters, schedules, limits and processes, and that
update themselves. They read with at most four connections that cannot write, and each statement for at most ten
seconds. They have buttons for the changes of the other commands, with the same entries in the audit; --read-only
removes the buttons.

Without --auth the pages are for this machine: the printed address has a token that works once and gives the browser a
cookie. With --auth basic:FILE the browser asks for a name and a password; FILE has lines NAME:PASSWORD, and only its
owner may read it. With --auth header:NAME a proxy authenticates the users and passes the user's name in that header;
the proxy runs on this machine, or in the networks after an @. A proxy that passes on its own host name needs --host
NAME. Programs embed the same pages with package eddaui.

With --database NAME=… more than once the command serves pages of each database below /NAME/, with a switch between them
in the header. If a database does not answer, its pages show the error, and the other pages work.`,
		Example: `  edda ui
  edda ui --listen 127.0.0.1:0 --read-only
  edda ui --database shop=postgres://db1/shop --database bank=postgres://db2/bank
  edda ui --listen 0.0.0.0:7433 --auth basic:/etc/edda/users
  edda ui --listen 10.0.0.5:7433 --auth header:X-Forwarded-User@10.0.0.0/24 --host edda.example.org`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			o.Schema, o.Out, o.Actor = t.schemaName(), t.out, actorName()
			o.Log = slog.New(slog.NewTextHandler(t.err, nil))
			host, err := uihost.New(o)
			if err != nil {
				return usage(c, err)
			}
			ctx, all, err := openDatabases(t, c, databases)
			defer func() {
				for _, d := range all {
					d.Pool.Close()
				}
			}()
			if err != nil {
				return err
			}
			return host.Serve(ctx, all...)
		},
	}
	c.Flags().StringArrayVar(&databases, "database", nil, "connection string (default $DATABASE_URL, else $PGHOST "+
		"and the like); or several times NAME=CONNECTION-STRING")
	c.Flags().StringVar(&o.Listen, "listen", "", "address and port; port 0 is a free one "+
		"(default "+uihost.Standard+", or a free port if that is taken)")
	c.Flags().StringVar(&o.Auth, "auth", "", "basic:FILE, or header:NAME; without it the pages serve only this machine")
	c.Flags().StringSliceVar(&o.Hosts, "host", nil, "host name that the proxy of header:NAME passes on with its "+
		"requests; localhost and addresses need no entry")
	c.Flags().BoolVar(&o.ReadOnly, "read-only", false, "serve no buttons, and refuse all changes")
	return c
}

// devCommand serves a database for development, and its pages.
func (t *tool) devCommand() *cobra.Command {
	o := uihost.Options{}
	c := &cobra.Command{
		Use: "dev [NAME]", Short: "Start a Postgres for development, make the tables, and serve the pages",
		Long: `Start a Postgres for development, make the tables, and serve the pages, until Ctrl-C. NAME is "dev" by
default; the data of each name is kept. Programs that call eddadev.Connect with this name use the same server, and so
does every program with the printed DATABASE_URL. If $DATABASE_URL or --database names a server, the command uses that
server.`,
		Example: `  edda dev
  edda dev shop --listen 127.0.0.1:0`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o.Schema, o.Out, o.Actor = t.schemaName(), t.out, actorName()
			o.Log = slog.New(slog.NewTextHandler(t.err, nil))
			host, err := uihost.New(o)
			if err != nil {
				return usage(c, err)
			}
			if t.database == "" {
				if t.database, err = eddadev.DSN(c.Context(), append(args, "dev")[0]); err != nil {
					return err
				}
			}
			ctx, err := t.connect(c.Context(), 0)
			if err != nil {
				return err
			}
			if err := migrations.Up(ctx, t.pool, migrations.Options{Schema: o.Schema}); err != nil {
				return err
			}
			return host.Serve(ctx, uihost.Database{Pool: t.pool})
		},
	}
	c.Flags().StringVar(&o.Listen, "listen", "", "address and port of the pages; port 0 is a free one "+
		"(default "+uihost.Standard+", or a free port if that is taken)")
	return c
}

// named is a connection string with a name before it. A connection string of libpq also begins with a name, as in
// host=db1, so the text after the first "=" must look like a connection string.
var named = regexp.MustCompile(`^([^=/:]+)=(postgres(?:ql)?://.*|\w+=.*)$`)

// openDatabases connects to the databases of ui: to the one of the flag or of the environment, or to several.
func openDatabases(t *tool, c *cobra.Command, flags []string) (context.Context, []uihost.Database, error) {
	if len(flags) < 2 && (len(flags) == 0 || !named.MatchString(flags[0])) {
		t.database = strings.Join(flags, "")
		ctx, _, err := t.openWithin(c.Context(), 0)
		if err != nil {
			return ctx, nil, err
		}
		return ctx, []uihost.Database{{Pool: t.pool}}, nil
	}
	names, texts := []string{}, []string{}
	for _, flag := range flags {
		parts := named.FindStringSubmatch(flag)
		if parts == nil {
			return nil, nil, usage(c, errors.New("--database is given more than once: want NAME=CONNECTION-STRING "+
				"each"))
		}
		names, texts = append(names, parts[1]), append(texts, parts[2])
	}
	if err := uihost.CheckNames(names); err != nil {
		return nil, nil, usage(c, err)
	}
	ctx, all := c.Context(), []uihost.Database{}
	for n, text := range texts {
		t.database = text
		if _, err := t.connect(ctx, 0); err != nil { // the pages report a schema that does not exist
			return ctx, all, fmt.Errorf("database %s: %w", names[n], err)
		}
		all = append(all, uihost.Database{Name: names[n], Pool: t.pool})
	}
	return ctx, all, nil
}
