package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t *tool) groupCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "group", Short: "Show, set, pause and cancel groups of manifests",
		Long: `A group of manifests shares a cap on the runs that are active at a time, a priority, and a switch.`,
		Example: `  edda group list
  edda group set settlement --max 2 --strict
  edda group pause settlement --reason "the bank is down until 14:00"`,
		RunE: group,
	}
	c.AddCommand(t.groupShowAll(), t.groupSet(), t.groupPause(), t.groupResume(), t.groupCancel())
	return c
}

type manifestGroupJSON struct {
	Group     string     `json:"group"`
	Owner     string     `json:"owner"`
	Max       int        `json:"max"` // 0 is no cap
	Strict    bool       `json:"strict"`
	Priority  int        `json:"priority"`
	Paused    *time.Time `json:"paused"`
	Reason    string     `json:"reason"`
	Manifests int        `json:"manifests"`
	Queued    int        `json:"queued"`
	Active    int        `json:"active"`
}

func manifestGroupOf(g scheduler.GroupInfo) manifestGroupJSON {
	return manifestGroupJSON{Group: g.Name, Owner: g.Owner, Max: g.Max, Strict: g.Strict, Priority: g.Priority,
		Paused: jsonTime(g.Paused),
		Reason: g.Reason, Manifests: g.Manifests, Queued: g.Queued, Active: g.Active}
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

func (t *tool) groupShowAll() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every group: its cap, and what is queued and active",
		Long:    `Show every group of manifests. Counts end at 10,000.`,
		Example: `  edda group list`,
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			list, err := s.Groups(ctx)
			if err != nil {
				return causeOf(ctx, err)
			}
			all := []manifestGroupJSON{}
			rows := [][]string{{"GROUP", "CAP", "ACTIVE", "QUEUED", "MANIFESTS", "PRIORITY", "OWNER", "PAUSED",
				"REASON"}}
			for _, g := range list {
				all = append(all, manifestGroupOf(g))
				rows = append(rows, []string{g.Name, capOf(g), strconv.Itoa(g.Active), strconv.Itoa(g.Queued),
					strconv.Itoa(g.Manifests),
					strconv.Itoa(g.Priority), g.Owner, moment(g.Paused), shortened(g.Reason, 40)})
			}
			return t.print(result{value: map[string]any{"groups": all}, page: func(p *page) {
				if len(list) == 0 {
					p.line("Schema %q has no group of manifests.", t.schemaName())
					return
				}
				p.table(rows)
			}})
		},
	}
}

func (t *tool) groupSet() *cobra.Command {
	to := scheduler.Group{}
	c := &cobra.Command{
		Use: "set GROUP", Short: "Set the cap and the priority of a group, or make one",
		Long: `Set the cap and the priority of a group, or make one. What no flag names stays as it is. It stays so
through deploys, until the program that declares the group declares something else than before. A lower cap ends nothing
that is active.`,
		Example: `  edda group set settlement --max 2 --strict
  edda group set reports --max 0 --priority 9`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.changeGroup(c, args[0], func(ctx context.Context, s *scheduler.Store) error {
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
	c.Flags().BoolVar(&to.Strict, "strict", false, "never more than --max, not for a moment; --strict=false counts "+
		"by each server")
	c.Flags().IntVar(&to.Priority, "priority", 0, "0 to 31: dispatched before groups with a lower one")
	return c
}

func (t *tool) groupPause() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use: "pause GROUP --reason TEXT", Short: "Let nothing of a group fire or be sent until it is resumed",
		Long: `Let nothing of a group fire, and nothing of it that is queued be sent, until "edda group resume". Runs
that are active go on: "edda group cancel" ends them.`,
		Example: `  edda group pause settlement --reason "the bank is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkReason(c, reason); err != nil {
				return err
			}
			return t.changeGroup(c, args[0], func(ctx context.Context,
				s *scheduler.Store) error {
				return s.PauseGroup(ctx, args[0], reason)
			})
		},
	}
	reasonFlag(c, &reason)
	return c
}

func (t *tool) groupResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume GROUP", Short: "End the pause of a group",
		Long:    `End the pause of a group. Manifests that are paused by themselves stay so.`,
		Example: `  edda group resume settlement`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.changeGroup(c, args[0], func(ctx context.Context,
				s *scheduler.Store) error {
				return s.ResumeGroup(ctx, args[0])
			})
		},
	}
}

// changeGroup makes a change and shows how the group stands then.
func (t *tool) changeGroup(c *cobra.Command, name string,
	change func(ctx context.Context, s *scheduler.Store) error) error {
	ctx, s, err := t.openStore(c.Context())
	if err != nil {
		return err
	}
	if err := change(ctx, s); err != nil {
		return causeOf(ctx, err)
	}
	g, err := s.GroupOf(ctx, name)
	if err != nil {
		return causeOf(ctx, err)
	}
	return t.print(result{value: manifestGroupOf(g), page: func(p *page) {
		p.fields("group", g.Name, "cap", capOf(g), "active", strconv.Itoa(g.Active), "queued", strconv.Itoa(g.Queued),
			"manifests", strconv.Itoa(g.Manifests),
			"priority", strconv.Itoa(g.Priority), "owner", g.Owner, "paused", moment(g.Paused), "reason", g.Reason)
	}})
}

func (t *tool) groupCancel() *cobra.Command {
	note := ""
	c := &cobra.Command{
		Use: "cancel GROUP --note TEXT", Short: "Cancel the runs of a group that are queued or active",
		Long: `Cancel the runs of a group that wait, are queued or active. Dead ones stay, since their manifests would
fire again. So that no new ones come, pause the group first.`,
		Example: `  edda group pause settlement --reason "wrong rates" && edda group cancel settlement --note "wrong rates"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkNote(c, note); err != nil {
				return err
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			n, err := s.CancelGroup(ctx, args[0], note)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(result{value: map[string]any{"group": args[0], "cancelled": n},
				page: func(p *page) { p.line("%d runs are cancelled.", n) }})
		},
	}
	noteFlag(c, &note)
	return c
}
