package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

func (t limits) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "limit", Short: "Show and set how much runs at once in the whole cluster",
		Long: `A limit is how many batches of an endpoint, or handlers of a leased one, run at once in all processes
together; or how many slots of a limit of its own ("named/" and a name) a program may hold. A change takes effect while
they run, and ends nothing that runs. An endpoint may have none.`,
		Example: `  edda limit list
  edda limit set billing 3
  edda limit set named/exports 5
  edda limit reset billing`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.get(), t.set(), t.reset())
	return c
}

// limits has the commands for limits.
type limits struct{ *tool }

func (t limits) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every limit: how much of it is used, and what waits",
		Long: `Show every limit. HELD is what runs at this moment; DRAINING is the part of it that runs on after the
limit was lowered; WAITING is the processes of a leased endpoint, or the callers of a program's own limit, that wait
for their turn, and WAITED for how long the first of them has. DECLARED is the number of the program, and SET BY shows
whether that number is in force or an operator's. Nothing is locked.`,
		Example: `  edda limit list
  edda limit list --json | jq '.limits[] | select(.waited_seconds > 60)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				infos, err := op.Limits().List(ctx)
				if err != nil {
					return view.View{}, err
				}
				held, err := op.Limits().Holders(ctx, "")
				return listed(view.Limits(infos, held), t.inSchema("There is no limit in schema %q.")), err
			})
		},
	}
}

func (t limits) get() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show one limit, and which process holds each of its slots",
		Long: `Show the limit of an endpoint, or with NAME "named/exports" the limit exports of a program's own, and
below it each slot that is held, up to 64: by which process, since when, until when unless the lease is extended, and
for what. A batch holds its slot by its transaction, and since when is only seen by its own role, or by one with
pg_read_all_stats. Exit code 3: there is none.`,
		Example: `  edda limit get billing`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0], func(context.Context, operate.Limits) error { return nil })
		},
	}
}

func (t limits) set() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME NUMBER", Short: "Let this many run at once: 1 to 10,000",
		Long: `Let this many batches of an endpoint, or handlers of a leased one, run at once in all processes together,
or with NAME "named/exports" this many hold a slot of the limit exports of a program's own: 1 to 10,000.

Raising takes effect at once. Lowering stops nothing that runs: nothing new begins until fewer than NUMBER are left. If
batches hold the limit, the command returns when those above the new limit have ended. An endpoint that had no limit
follows its first one within a second or two. A deploy does not change NUMBER; "edda limit reset" does.`,
		Example: `  edda limit set billing 3`,
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > operate.MostLimit {
				return usage(c, fmt.Errorf(`%s is not a limit: want 1 to %d; "edda endpoint pause" stops an endpoint`,
					view.Escape(args[1]), operate.MostLimit))
			}
			return t.change(c, args[0],
				func(ctx context.Context, l operate.Limits) error { return l.Set(ctx, args[0], n) })
		},
	}
}

func (t limits) reset() *cobra.Command {
	return &cobra.Command{
		Use: "reset NAME", Short: "Return to the limit that the program declares",
		Long: `Return to the limit that the program declares, as EndpointOptions.ClusterConcurrency or with each call
under a limit of its own, and follow it from then on: the next deploy with another number changes the limit. Lowering
waits as in "edda limit set". Exit code 3: no program has declared one.`,
		Example: `  edda limit reset billing`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, l operate.Limits) error { return l.Reset(ctx, args[0]) })
		},
	}
}

// change makes a change and shows the limit afterwards.
func (t limits) change(c *cobra.Command, name string, do func(context.Context, operate.Limits) error) error {
	return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
		if err := do(ctx, op.Limits()); err != nil {
			return view.View{}, err
		}
		i, err := op.Limits().Get(ctx, name)
		if err != nil {
			return view.View{}, err
		}
		held, err := op.Limits().Holders(ctx, name)
		return view.Limit(i, held), err
	})
}
