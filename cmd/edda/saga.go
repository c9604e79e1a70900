package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t sagas) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "saga", Short: "Show living saga instances, repair and end them, and move their timeouts",
		Example: `  edda saga list order --prefix 2026-
  edda saga show order 2026-0007
  edda saga repair order 2026-0007 --version 3 --state fixed.json --reason "the total was lost"`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.show(), t.repair(), t.end(), t.retime())
	return c
}

// sagas has the commands for saga instances.
type sagas struct{ *tool }

func (t sagas) list() *cobra.Command {
	var o persistence.ListOptions
	after := ""
	c := &cobra.Command{
		Use: "list [SAGA]", Short: "Show living instances in the order of saga and key",
		Long: `Show living instances in the order of saga and key, of one saga or of all, a page at a time. TIMEOUTS is
how many an instance waits for, NEXT the earliest of them. A completed instance is gone, and not shown, unless its
saga remembers it: then REMEMBERED UNTIL says when it is forgotten.`,
		Example: `  edda saga list
  edda saga list order --prefix 2026- --limit 200
  edda saga list order --after order/2026-0007`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Saga = args[0]
			}
			if o.KeyPrefix != "" && o.Saga == "" {
				return usage(c, fmt.Errorf("--prefix needs the name of the saga: edda saga list SAGA --prefix %s",
					view.Escape(o.KeyPrefix)))
			}
			if after != "" {
				ok := false
				if o.AfterSaga, o.AfterKey, ok = strings.Cut(after, "/"); !ok {
					return usage(c, fmt.Errorf("--after %s: want SAGA/KEY, the end of the page before",
						view.Escape(after)))
				}
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				all, err := op.Sagas().Instances(ctx, o)
				return listed(view.Instances(all, o.Limit), "No such instance lives."), err
			})
		},
	}
	c.Flags().StringVar(&o.KeyPrefix, "prefix", "", "only keys that begin with this, with a SAGA")
	c.Flags().IntVar(&o.Limit, "limit", persistence.DefaultLimit, "instances, at most 200")
	c.Flags().StringVar(&after, "after", "", "continue after this instance, given as SAGA/KEY")
	return c
}

func (t sagas) show() *cobra.Command {
	return &cobra.Command{
		Use: "show SAGA KEY", Short: "Show one instance with its state, and what happened to it last",
		Long: `Show one instance with its state as it is stored, its pending timeouts, who started it, and its last 10
versions. "edda history show" has those before them. Exit code 3: there is no instance of this key; it may have
completed, which "edda history show" knows, or never started.`,
		Example: `  edda saga show order 2026-0007
  edda saga show order 2026-0007 --json | jq '.state'`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				l, ok, err := op.Sagas().Show(ctx, args[0], args[1])
				if err != nil {
					return view.View{}, err
				}
				if !ok {
					return view.View{}, fmt.Errorf("show saga %s/%s: no instance of this key is alive: %w", args[0],
						args[1],
						errNotFound)
				}
				versions, err := lastVersions(ctx, op, l.Instance)
				return view.Instance(l, versions), err
			})
		},
	}
}

// lastVersions is the end of an instance's timeline; nothing if it has ended meanwhile.
func lastVersions(ctx context.Context, op *operate.Operator, i saga.Instance) ([]history.Version, error) {
	life, ok, err := op.History().Life(ctx, i.ID)
	if err != nil || !ok {
		return nil, err
	}
	versions, _, err := op.History().Timeline(ctx, life, saga.ID{}, 10)
	return versions, err
}
