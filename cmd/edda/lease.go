package main

import (
	"context"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t leases) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "lease", Short: "Show which process holds each lease, and make it give the lease up",
		Long: `A lease lets one process at a time do something: a loop of yours (singleton/NAME), the evaluation of
manifests (scheduler), a partition (partition/ENDPOINT/QUEUE). The holder renews it, gives it back
at the end, and loses it by expiry if it dies.`,
		Example: `  edda lease list
  edda lease resign singleton/rates`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.resign())
	return c
}

// leases has the commands for leases, which only one process at a time can hold.
type leases struct{ *tool }

func (t leases) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every lease with its holder, its term and the end of the term",
		Long: `Show every lease that was ever held. HELD is "yes"; "resigning" after "edda lease resign"; or "no" when
the lease was given back or has expired: HOLDER then names the last holder if the lease expired. EXPIRES is the end of
the term unless the holder renews it. EPOCH grows by one with each term: if it grows all the time, no process can keep
the lease. The command locks nothing.`,
		Example: `  edda lease list
  edda lease list --json | jq '.leases[] | select(.held | not)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.leased(c, func(ctx context.Context, leases *scheduler.Leases) (view.View, error) {
				infos, err := leases.List(ctx)
				return listed(view.Leases(infos), t.inSchema("No lease of schema %q was ever held.")), err
			})
		},
	}
}

func (t leases) resign() *cobra.Command {
	return &cobra.Command{
		Use: "resign NAME", Short: "Make the holder of a lease give it up to a different process",
		Long: `Make the holder of a lease end its term. It gets the request at once if it listens, otherwise with its
next renewal; it stops its work, releases the lease, and does not bid for it for a while. If there is no other process,
it then acquires the lease again. The command does not wait for the holder. The lease of a dead process expires by
itself. Exit code 3: no process holds a lease of this name.`,
		Example: `  edda lease resign singleton/rates`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.leased(c, func(ctx context.Context, leases *scheduler.Leases) (view.View, error) {
				return lineOf(view.Object{"asked", args[0]}, "The holder of %s was requested to give it up.", args[0]),
					leases.Resign(ctx, args[0])
			})
		},
	}
}

func (t leases) leased(c *cobra.Command, do func(context.Context, *scheduler.Leases) (view.View, error)) error {
	return t.operate(c, func(ctx context.Context, _ *operate.Operator) (view.View, error) {
		leases, err := scheduler.NewLeases(t.pool, t.schemaName())
		if err != nil {
			return view.View{}, err
		}
		return do(ctx, leases)
	})
}
