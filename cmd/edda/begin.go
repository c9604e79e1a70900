package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/edda-go/edda/cmd/edda/internal/scaffold"
	"github.com/edda-go/edda/internal/test/demo"
	"github.com/edda-go/edda/internal/test/demo/pages"
	"github.com/edda-go/edda/internal/test/demo/trade"
	worlds "github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/spf13/cobra"
)

// beginnings has the commands for people who do not have a program yet.
type beginnings struct{ *tool }

func (t beginnings) demoCommand() *cobra.Command {
	s, shown := trade.Settings{}, ""
	c := &cobra.Command{
		Use: "demo", Short: "Run a shop of sagas for half a minute, with failures and its pages",
		Long: `Run a shop of sagas for half a minute, with failures on purpose, and prove at the end that every order
had each effect exactly once. Its pages are served at the address that is printed, with --stay until Ctrl-C.

The database is --database or $DATABASE_URL, where the shop makes two schemas and removes them at the end. Without
either, the command starts a private Postgres, downloads it if it finds no installed one, and deletes it at the end.

With --world the pages show a different example until Ctrl-C: ` + worlds.Names() + `.

The exit code is 0 if all orders are right, and 1 otherwise.`,
		Example: `  edda demo
  edda demo --stay --pages 127.0.0.1:7433
  edda demo --world shop`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := pages.Check(s.Pages); err != nil {
				return usage(c, fmt.Errorf("--pages: %w", err))
			}
			if shown != "" {
				if err := worlds.Check(shown); err != nil {
					return usage(c, err)
				}
				return t.show(c.Context(), shown, s.Pages)
			}
			if err := s.Check(); err != nil {
				return usage(c, err)
			}
			s.Database = t.database
			return trade.Run(c.Context(), s, t.out)
		},
	}
	f := c.Flags()
	f.IntVar(&s.Orders, "orders", 8000, "how many orders are placed")
	f.IntVar(&s.Rate, "rate", 400, "how many orders are placed a second, at least 20")
	f.DurationVar(&s.PayWithin, "pay-within", 3*time.Second, "how long an order waits for its money")
	f.DurationVar(&s.Within, "within", 2*time.Minute, "how long all orders may take to end")
	f.StringVar(&s.Pages, "pages", "127.0.0.1:0", "the loopback address of the pages; port 0 is a free one")
	f.BoolVar(&s.Stay, "stay", false, "serve the pages when all orders have ended, until Ctrl-C")
	f.StringVar(&shown, "world", "", "example to show in place of the shop")
	return c
}

// show serves the pages of a world until ctx ends.
func (t beginnings) show(ctx context.Context, name, address string) error {
	return demo.OnDatabase(ctx, t.database, "ui", "", func(d *demo.Database) error {
		w, err := worlds.Open(ctx, d.Pool, d.Edda, name)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		site, err := pages.Open(ctx, address, d.Pool, d.Edda, w.Sagas...)
		if err != nil {
			return err
		}
		if !w.Labels.IsZero() {
			_, _ = fmt.Fprintf(t.out, "A conversation: /conversations/%s\n", w.Labels)
		}
		if t.database == "" && os.Getenv("DATABASE_URL") == "" {
			_, _ = fmt.Fprintf(t.out, "In a shell: DATABASE_URL=%s EDDA_SCHEMA=%s edda queue list\n", d.DSN, d.Edda)
		}
		_, _ = fmt.Fprintf(t.out, "Look at it in a browser: %s\n", site.URL())
		return site.Wait()
	})
}

func (t beginnings) newCommand() *cobra.Command {
	o := scaffold.Options{}
	c := &cobra.Command{
		Use: "new NAME", Short: "Write a small program to begin with",
		Long: `Write a small program to begin with into the folder NAME, which must be new or empty: a saga, a service
that answers it, a timeout, and tests, one of which starts a Postgres. The program is about orders and their payments,
whatever NAME is: rename its types. Its go.mod requires the version of this command, or with --replace the source of
Edda in a folder.`,
		Example: `  edda new parcels
  edda new parcels --module example.com/parcels
  edda new /tmp/parcels --replace .`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o.Folder, o.Version = args[0], ownVersion()
			if o.Replace == "" && (o.Version == noVersion || strings.HasSuffix(o.Version, "+dirty")) {
				return usage(c, errors.New("this command was built from a folder and has no version of Edda: give "+
					"that folder with --replace"))
			}
			files, err := scaffold.Write(o)
			if err != nil {
				return err
			}
			return t.print(lineOf(view.Object{"folder", o.Folder, "files", files},
				"%s has a program about orders to start from. To run it: cd %s && go mod tidy && go run .",
				o.Folder, quoted(o.Folder)))
		},
	}
	c.Flags().StringVar(&o.Module, "module", "", "the path of its module (default the last part of NAME)")
	c.Flags().StringVar(&o.Replace, "replace", "", "a folder with the source of Edda, to use in place of a version")
	return c
}
