package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/demo/pages"
	"github.com/edda-go/edda/internal/demo/trade"
	worlds "github.com/edda-go/edda/internal/demo/world"
	"github.com/spf13/cobra"
)

// beginnings are for people who have no program of their own yet.
type beginnings struct{ *tool }

func (t beginnings) demoCommand() *cobra.Command {
	s, shown := trade.Settings{}, ""
	c := &cobra.Command{
		Use: "demo", Short: "Run a shop of sagas for half a minute, with failures and its pages",
		Long: `Run a shop of sagas for half a minute, with failures on purpose, and prove at the end that every
order had each effect exactly once. Its pages are at the address that is printed, and with --stay they are there until
Ctrl-C.

The database is --database or $DATABASE_URL, where the shop makes two schemas and removes them at the end; or else a
private Postgres, made from installed binaries and thrown away.

With --world the pages show something else until Ctrl-C: ` + worlds.Names() + `.

The exit code is 0 if all orders are right, and 1 otherwise.`,
		Example: `  edda demo
  edda demo --stay --pages 127.0.0.1:7433
  edda demo --world shop`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
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
	f.IntVar(&s.Orders, "orders", 8000, "how `many` orders are placed")
	f.IntVar(&s.Rate, "rate", 400, "how many orders are placed a `second`, at least 20")
	f.DurationVar(&s.PayWithin, "pay-within", 3*time.Second, "how long an order waits for its money")
	f.DurationVar(&s.Within, "within", 2*time.Minute, "how long all orders may take to end")
	f.StringVar(&s.Pages, "pages", "127.0.0.1:0", "where the pages listen: an `address`; port 0 is a free one")
	f.BoolVar(&s.Stay, "stay", false, "serve the pages when all orders have ended, until Ctrl-C")
	f.StringVar(&shown, "world", "", "show this in place of the shop")
	return c
}

// show serves the pages of a world until ctx ends.
func (t beginnings) show(ctx context.Context, name, address string) error {
	return demo.OnDatabase(ctx, t.database, "demo", "", func(d *demo.Database) error {
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
