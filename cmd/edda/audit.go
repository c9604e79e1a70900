package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

// acting returns a context with the user of this machine as actor, and the reason of the flag.
func (t *tool) acting(ctx context.Context) context.Context {
	return operate.WithReason(operate.WithActor(ctx, operate.Actor{Name: actorName()}), t.reason)
}

// actorName returns the user of this machine, and the machine.
func actorName() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

func (t *tool) auditCommand() *cobra.Command {
	var f operate.AuditFilter
	since, until := "", ""
	c := &cobra.Command{
		Use: "audit", Short: "Show the changes by operators, with author and reason",
		Long: `Show the changes that operators made with this command, with programs that call package operate, and with
SQL, the newest first. BY is the actor that the program named, $USER and the host for this command, or the role of the
database. CHANGE shows the fields that differ; --json prints the whole entry. Entries are kept for 400 days.`,
		Example: `  edda audit
  edda audit --target orders --since 24h
  edda audit --verb endpoint --by ann@laptop`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkTimes(c, "since", since, "until", until); err != nil {
				return err
			}
			if f.Limit < 1 || f.Limit > audit.MaxPage {
				return usage(c, fmt.Errorf("--limit is %d, want 1 to %d", f.Limit, audit.MaxPage))
			}
			if f.Before < 0 {
				return usage(c, fmt.Errorf("--after is %d, want the number of an entry", f.Before))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				now, err := t.now(ctx)
				if err != nil {
					return view.View{}, err
				}
				if since != "" {
					f.Since, _ = view.ReadTime(since, now) // the command line was checked before
				}
				if until != "" {
					f.Until, _ = view.ReadTime(until, now)
				}
				all, err := op.Audit(ctx, f)
				return listed(view.Audit(all, f.Limit), "Nothing was changed."), err
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.By, "by", "", "only changes by this actor, or by this role if no actor was named")
	flags.StringVar(&f.Verb, "verb", "", "only this verb, like endpoint.pause, or every verb of a target, like "+
		"endpoint")
	flags.StringVar(&f.Target, "target", "", "only changes of this target")
	flags.StringVar(&since, "since", "", "only changes at this time or later: 2026-11-21T10:00:00Z, or 2h for two "+
		"hours ago")
	flags.StringVar(&until, "until", "", "only changes before this time")
	flags.Int64Var(&f.Before, "after", 0, "continue with entries older than this number, which the previous page "+
		"printed")
	flags.IntVar(&f.Limit, "limit", 100, "entries")
	return c
}
