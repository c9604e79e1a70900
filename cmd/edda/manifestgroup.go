package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t groups) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "group", Short: "Show, set, pause and cancel groups of manifests",
		Long: `A group of manifests shares a cap on the runs that are active at a time, a priority, and a switch.`,
		Example: `  edda group list
  edda group set settlement --max 2 --strict
  edda group pause settlement --reason "the bank is down until 14:00"`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.set(), t.pause(), t.resume(), t.cancel())
	return c
}

// groups has the commands for groups of manifests.
type groups struct{ *tool }

func manifestGroupOf(g scheduler.GroupInfo) object { // a max of 0 is no cap
	return object{"group", g.Name, "owner", g.Owner, "max", g.Max, "strict", g.Strict, "priority", g.Priority, "paused",
		jsonTime(g.Paused), "reason", g.Reason, "manifests", g.Manifests, "queued", g.Queued, "active", g.Active}
}

func capOf(g scheduler.GroupInfo) string {
	switch {
	case g.Max == 0:
		return "none"
	case g.Strict:
		return strconv.Itoa(g.Max) + " strict"
	}
	return strconv.Itoa(g.Max)
}

func (t groups) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every group: its cap, and what is queued and active",
		Long:    `Show every group of manifests. Counts end at 10,000.`,
		Example: `  edda group list`,
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				list, err := s.Groups(ctx)
				return listing{name: "groups", none: t.inSchema("Schema %q has no group of manifests.")}.of(
					"GROUP|CAP|ACTIVE|QUEUED|MANIFESTS|PRIORITY|OWNER|PAUSED|REASON", rows(list,
						func(g scheduler.GroupInfo) (object, []string) {
							return manifestGroupOf(g), []string{g.Name, capOf(g), strconv.Itoa(g.Active),
								strconv.Itoa(g.Queued), strconv.Itoa(g.Manifests), strconv.Itoa(g.Priority), g.Owner,
								moment(g.Paused), shortened(g.Reason, 40)}
						})), err
			})
		},
	}
}

func (t groups) set() *cobra.Command {
	to := scheduler.Group{}
	c := &cobra.Command{
		Use: "set GROUP", Short: "Set the cap and the priority of a group, or make one",
		Long: `Set the cap and the priority of a group, or make one. What no flag names stays as it is. It stays so
through deploys, until the program that declares the group declares something else than before. A lower cap stops
nothing that is active.`,
		Example: `  edda group set settlement --max 2 --strict
  edda group set reports --max 0 --priority 9`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0], func(ctx context.Context, s *scheduler.Store) error {
				g := scheduler.Group{Name: args[0]}
				is, err := s.GroupOf(ctx, args[0])
				if err == nil {
					g = is.Group
				} else if !errors.Is(err, scheduler.ErrNoGroup) {
					return err
				}
				if c.Flags().Changed("max") {
					g.Max = to.Max
				}
				if c.Flags().Changed("strict") {
					g.Strict = to.Strict
				}
				if c.Flags().Changed("priority") {
					g.Priority = to.Priority
				}
				return s.SetGroup(ctx, g)
			})
		},
	}
	c.Flags().IntVar(&to.Max, "max", 0, "runs that are active at a time; 0 is no cap")
	c.Flags().BoolVar(&to.Strict, "strict", false, "never more than --max, not even briefly; with --strict=false each "+
		"server counts for itself")
	c.Flags().IntVar(&to.Priority, "priority", 0, "0 to 31: dispatched before groups with a lower one")
	return c
}

func (t groups) pause() *cobra.Command {
	reason := ""
	return because("reason", &reason, &cobra.Command{
		Use: "pause GROUP --reason TEXT", Short: "Stop a group from firing and sending until it is resumed",
		Long: `Let nothing of a group fire, and nothing of it that is queued be sent, until "edda group resume". Runs
that are active go on: "edda group cancel" ends them.`,
		Example: `  edda group pause settlement --reason "the bank is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.PauseGroup(ctx, args[0], reason) })
		},
	})
}

func (t groups) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume GROUP", Short: "End the pause of a group",
		Long:    `End the pause of a group. Manifests that are paused by themselves stay so.`,
		Example: `  edda group resume settlement`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.ResumeGroup(ctx, args[0]) })
		},
	}
}

// change makes a change and shows how the group stands then.
func (t groups) change(c *cobra.Command, name string, do func(ctx context.Context, s *scheduler.Store) error) error {
	return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
		if err := do(ctx, s); err != nil {
			return result{}, err
		}
		g, err := s.GroupOf(ctx, name)
		return result{value: manifestGroupOf(g), page: func(p *page) {
			p.fields("group", g.Name, "cap", capOf(g), "active", strconv.Itoa(g.Active), "queued",
				strconv.Itoa(g.Queued), "manifests", strconv.Itoa(g.Manifests), "priority", strconv.Itoa(g.Priority),
				"owner", g.Owner, "paused", moment(g.Paused), "reason", g.Reason)
		}}, err
	})
}

func (t groups) cancel() *cobra.Command {
	note := ""
	return because("note", &note, &cobra.Command{
		Use: "cancel GROUP --note TEXT", Short: "Cancel the runs of a group that are queued or active",
		Long: `Cancel the runs of a group that wait, are queued or active. Dead ones stay, since their manifests would
fire again. So that no new ones come, pause the group first.`,
		Example: `  edda group pause settlement --reason "wrong rates" && edda group cancel settlement --note ` +
			`"wrong rates"`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				n, err := s.CancelGroup(ctx, args[0], note)
				return lineOf(object{"cancelled", n, "group", args[0]}, "%d runs are cancelled.", n), err
			})
		},
	})
}
