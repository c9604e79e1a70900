package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t runs) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Show, cancel and retry runs of manifests",
		Long: `A run is one firing of a manifest. It waits for its due time, is queued, is active while its message is
handled, and ends as succeeded, cancelled or timed_out. A run that failed for good is dead, and its manifest does not
fire until the run is retried or cancelled.`,
		Example: `  edda run list --state dead
  edda run show 0198c0de-0000-7000-8000-000000000001
  edda run retry 0198c0de-0000-7000-8000-000000000001 --note "the disk is free again"`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.show(), t.cancel(), t.retry())
	return c
}

// runs has the commands for the runs of manifests.
type runs struct{ *tool }

const runStates = " waiting queued active dead succeeded cancelled timed_out "

func (t runs) list() *cobra.Command {
	var f scheduler.RunFilter
	var state, after, since, until string
	c := &cobra.Command{
		Use: "list", Short: "Show runs, the newest first",
		Example: `  edda run list --manifest night/settle
  edda run list --state dead
  edda run list --since 2h --json | jq '[.runs[] | select(.state == "timed_out")] | length'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.State = scheduler.RunState(state); state != "" && !strings.Contains(runStates, " "+state+" ") {
				return usage(c, fmt.Errorf("--state %s: want one of:%s", view.Escape(state),
					strings.TrimRight(runStates, " ")))
			}
			if f.Limit < 1 || f.Limit > scheduler.MaxLimit {
				return usage(c, fmt.Errorf("--limit %d: want 1 to %d", f.Limit, scheduler.MaxLimit))
			}
			if after != "" {
				if f.After, err = saga.ParseID(after); err != nil {
					return usage(c, fmt.Errorf("--after %s: %w", view.Escape(after), err))
				}
			}
			if err := checkTimes(c, "since", since, "until", until); err != nil {
				return err
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				if f.Since, f.Until, err = t.period(ctx, since, until); err != nil {
					return view.View{}, err
				}
				list, err := s.Runs(ctx, f)
				return listed(view.Runs(list, f.Limit), "No such run."), err
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Manifest, "manifest", "", "only runs of this manifest")
	flags.StringVar(&f.Group, "group", "", "only runs that were queued in this group")
	flags.StringVar(&state, "state", "", "only runs in this state: waiting, queued, active, dead, succeeded, "+
		"cancelled, timed_out")
	flags.StringVar(&since, "since", "", "only runs queued at this time or later: 2026-11-21T10:00:00Z, or 2h "+
		"for two hours ago")
	flags.StringVar(&until, "until", "", "only runs queued before this time")
	flags.StringVar(&after, "after", "", "continue after the run with this id")
	flags.IntVar(&f.Limit, "limit", 100, "runs, at most 1000")
	return c
}

func (t runs) show() *cobra.Command {
	bodies := false
	c := &cobra.Command{
		Use: "show RUN", Short: "Show one run with its attempts",
		Long: `Show one run with its attempts, the newest first. Its message is shown with --body only. Exit code 3:
there is no such run.`,
		Example: `  edda run show 0198c0de-0000-7000-8000-000000000001`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := runIDs(c, args)
			if err != nil {
				return err
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				r, err := s.RunOf(ctx, ids[0])
				return view.Run(r, bodies), err
			})
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show its message")
	return c
}

func runIDs(c *cobra.Command, args []string) (ids []saga.ID, err error) {
	for _, text := range args {
		id, err := saga.ParseID(text)
		if err != nil {
			return nil, usage(c, fmt.Errorf("%s is not the id of a run: %w", view.Escape(text), err))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (t runs) cancel() *cobra.Command {
	note := ""
	return because("note", &note, &cobra.Command{
		Use: "cancel RUN... --note TEXT", Short: "End runs that have not ended",
		Long: `End runs that wait, are queued, active or dead. A handler that works on a run's message cannot commit any
more, and a queued message of a run is dropped. The manifest may fire again: pause it first if it must not. Each run is
a transaction of its own.`,
		Example: `  edda run cancel 0198c0de-0000-7000-8000-000000000001 --note "wrong rates"`,
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args, note, change{"cancelled", (*scheduler.Store).Cancel})
		},
	})
}

func (t runs) retry() *cobra.Command {
	note := ""
	return because("note", &note, &cobra.Command{
		Use: "retry RUN... --note TEXT", Short: "Queue runs again that are dead, timed out or cancelled",
		Long: `Queue runs again that are dead, timed out or cancelled, with their message, and start the next attempt of
a waiting run at once. The manifest of a dead run can fire again. Each run is a transaction of its own.`,
		Example: `  edda run retry 0198c0de-0000-7000-8000-000000000001 --note "the disk is free again"`,
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args, note, change{"retried", (*scheduler.Store).Retry})
		},
	})
}

// change is an operation on runs, one by one.
type change struct {
	done string
	to   func(s *scheduler.Store, ctx context.Context, run saga.ID, note string) error
}

func (t runs) change(c *cobra.Command, args []string, note string, do change) error {
	ids, err := runIDs(c, args)
	if err != nil {
		return err
	}
	ctx, s, err := t.openStore(c.Context())
	if err != nil {
		return err
	}
	done, faults := []saga.ID{}, []error{}
	for _, id := range ids {
		if err := do.to(s, ctx, id, note); err != nil {
			faults = append(faults, causeOf(ctx, err))
			continue
		}
		done = append(done, id)
	}
	v := view.View{JSON: view.Object{do.done, done}}
	for _, id := range done {
		v.Parts = append(v.Parts, linef("Run %s is %s.", id, do.done))
	}
	printErr := t.print(v)
	return errors.Join(printErr, worstOf(faults))
}

// worstOf joins faults, with the exit code of the worst: a failure is worse than a run that does not exist.
func worstOf(faults []error) error {
	if len(faults) < 2 {
		return errors.Join(faults...)
	}
	all := severalErrors{text: fmt.Sprintf("%d runs are as they were:", len(faults))}
	for _, fault := range faults {
		all.text += "\n  " + fault.Error()
		if all.worst == nil || errors.Is(all.worst, scheduler.ErrNoRun) {
			all.worst = fault
		}
	}
	return all
}
