package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

func (t limits) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "limit", Short: "Show and set how many batches or handlers run at once in the cluster",
		Long: `A limit is the number of batches of an endpoint, or of handlers of a leased endpoint, that may run at
once in all processes together; or, for a limit of a program ("named/" and a name), the number of its slots. A change
applies to running programs, and stops no running work. An endpoint may have no limit.`,
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
		Use: "list", Short: "Show every limit, its holders and its waiting processes",
		Long: `Show every limit. HELD is the number of slots in use; DRAINING is how many of them exceed the limit after
it was lowered; WAITING is the number of processes of a leased endpoint, or of callers of a program's limit, that wait
for a slot, and WAITED for how long the first of them has waited. DECLARED is the number of the program, and SET BY
shows whether the program's or an operator's number applies. The command locks nothing.`,
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
		Long: `Show the limit of an endpoint, or with NAME "named/exports" the limit exports of a program, and below it
each held slot, up to 64: its process, when the process acquired it, when its lease expires unless it is extended, and
its message. A batch holds its slot by its transaction; only its own role, or a role with pg_read_all_stats, can read
when it began. Exit code 3: there is no such limit.`,
		Example: `  edda limit get billing`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0], func(context.Context, operate.Limits) error { return nil })
		},
	}
}

func (t limits) set() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME NUMBER", Short: "Set how many run at once: 1 to 10,000",
		Long: `Set how many batches of an endpoint, or handlers of a leased endpoint, run at once in all processes
together, or with NAME "named/exports" how many slots the limit exports of a program has: 1 to 10,000.

A higher number applies at once. A lower number stops no running work: no new work begins until fewer than NUMBER run.
If batches hold the limit, the command returns when the surplus batches have ended. An endpoint without a limit follows
its first one within about two seconds. A deploy does not change NUMBER; "edda limit reset" does.`,
		Example: `  edda limit set billing 3`,
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > limit.Most {
				return usage(c, fmt.Errorf(`%s is not a limit: want 1 to %d; "edda endpoint pause" stops an endpoint`,
					view.Escape(args[1]), limit.Most))
			}
			return t.change(c, args[0],
				func(ctx context.Context, l operate.Limits) error { return l.Set(ctx, args[0], n) })
		},
	}
}

func (t limits) reset() *cobra.Command {
	return &cobra.Command{
		Use: "reset NAME", Short: "Return to the limit that the program declares",
		Long: `Return to the limit that the program declares, with EndpointOptions.ClusterConcurrency or with each call
under its own limit, and follow it from then on: the next deploy with a different number changes the limit. A lower
number waits as in "edda limit set". Exit code 3: no program has declared a limit.`,
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
