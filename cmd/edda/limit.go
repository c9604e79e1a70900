package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

func (t *tool) limitCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "limit", Short: "Show and set how much of an endpoint runs at once in the whole cluster",
		Long: `A limit is how many batches of an endpoint, or handlers of a leased one, run at once in all processes
together. A change takes effect while they run, and ends nothing that runs. An endpoint may have none.`,
		Example: `  edda limit list
  edda limit set billing 3
  edda limit pause billing --reason "the bank is down until 14:00"`,
		RunE: group,
	}
	c.AddCommand(t.limitList(), t.limitGet(), t.limitSet(), t.limitPause(), t.limitResume())
	return c
}

type limitJSON struct {
	Endpoint string     `json:"endpoint"`
	Limit    int        `json:"limit"`
	InForce  int        `json:"in_force"`
	Held     int        `json:"held"`
	Draining int        `json:"draining"`
	Waiting  int        `json:"waiting"`
	Oldest   *time.Time `json:"oldest"`
	Waited   float64    `json:"waited_seconds"`
	Paused   *time.Time `json:"paused"`
	Reason   string     `json:"reason"`
}

func limitOf(i operate.LimitInfo) limitJSON {
	return limitJSON{
		Endpoint: i.Endpoint, Limit: i.Limit, InForce: i.InForce, Held: i.Held, Draining: i.Draining,
		Waiting: i.Waiting,
		Oldest:  jsonTime(i.Oldest), Waited: i.Waited.Seconds(), Paused: jsonTime(i.Paused), Reason: i.Reason,
	}
}

func (t *tool) limitList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every limit: how much of it is used, and who waits",
		Long: `Show every limit. HELD is what runs at this moment; DRAINING is the part of it that runs on after the
limit was lowered or paused, and that nothing follows; WAITING is the processes of a leased endpoint that wait for their
turn, and WAITED for how long the first of them has. Nothing is locked.`,
		Example: `  edda limit list
  edda limit list --json | jq '.limits[] | select(.waited_seconds > 60)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			infos, err := op.Limits().List(ctx)
			if err != nil {
				return causeOf(ctx, err)
			}
			all := []limitJSON{}
			rows := [][]string{{"ENDPOINT", "LIMIT", "HELD", "DRAINING", "WAITING", "WAITED", "PAUSED", "REASON"}}
			for _, i := range infos {
				all = append(all, limitOf(i))
				rows = append(rows, []string{i.Endpoint, strconv.Itoa(i.Limit), strconv.Itoa(i.Held),
					strconv.Itoa(i.Draining),
					strconv.Itoa(i.Waiting), span(i.Waited), moment(i.Paused), shortened(i.Reason, 40)})
			}
			return t.print(result{value: map[string]any{"limits": all}, page: func(p *page) {
				if len(infos) == 0 {
					p.line("No endpoint of schema %q has a limit.", t.schemaName())
					return
				}
				p.table(rows)
			}})
		},
	}
}

func (t *tool) limitGet() *cobra.Command {
	return &cobra.Command{
		Use: "get ENDPOINT", Short: "Show the limit of one endpoint",
		Long:    `Show the limit of one endpoint. Exit code 3: it has none.`,
		Example: `  edda limit get billing`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.aboutLimit(c, args[0], nil)
		},
	}
}

func (t *tool) limitSet() *cobra.Command {
	return &cobra.Command{
		Use: "set ENDPOINT NUMBER", Short: "Let so many run at once: 1 to 10,000",
		Long: `Let so many batches of an endpoint, or handlers of a leased one, run at once in all processes together, 1
to 10,000.

Raising takes effect at once. Lowering ends nothing that runs: nothing new begins until less than NUMBER is left. Where
batches hold the limit, the command returns when so many of them as were too many have ended. An endpoint that had no
limit heeds its first within a second or two.`,
		Example: `  edda limit set billing 3`,
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > operate.MostLimit {
				return usage(c, fmt.Errorf(`%s is no limit: want 1 to %d; "edda limit pause" lets nothing run`,
					escape(args[1]), operate.MostLimit))
			}
			return t.aboutLimit(c, args[0], func(ctx context.Context,
				op *operate.Operator) error {
				return op.Limits().Set(ctx, args[0], n)
			})
		},
	}
}

func (t *tool) limitPause() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use: "pause ENDPOINT --reason TEXT", Short: "Let nothing of an endpoint begin until it is resumed",
		Long: `Let nothing of an endpoint begin until "edda limit resume". What runs goes on. Messages wait in the queue
meanwhile. Exit code 3: the endpoint has no limit; give it one first.`,
		Example: `  edda limit pause billing --reason "the bank is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage(c, errors.New("--reason is missing: say why, for those who wonder why nothing runs"))
			}
			return t.aboutLimit(c, args[0], func(ctx context.Context,
				op *operate.Operator) error {
				return op.Limits().Pause(ctx, args[0], reason)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look (required)")
	return c
}

func (t *tool) limitResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume ENDPOINT", Short: "End a pause",
		Long: `End a pause. The limit is what it was before, or what it was set to meanwhile. Exit code 3: the
endpoint has no limit.`,
		Example: `  edda limit resume billing`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.aboutLimit(c, args[0], func(ctx context.Context,
				op *operate.Operator) error {
				return op.Limits().Resume(ctx, args[0])
			})
		},
	}
}

// aboutLimit makes a change, if there is one to make, and shows how the limit stands then.
func (t *tool) aboutLimit(
	c *cobra.Command,
	endpoint string,
	change func(ctx context.Context, op *operate.Operator) error,
) error {
	ctx, op, err := t.open(c.Context())
	if err != nil {
		return err
	}
	if change != nil {
		if err := change(ctx, op); err != nil {
			return causeOf(ctx, err)
		}
	}
	i, err := op.Limits().Get(ctx, endpoint)
	if err != nil {
		return causeOf(ctx, err)
	}
	return t.print(result{value: limitOf(i), page: func(p *page) {
		p.fields("endpoint", i.Endpoint, "limit", strconv.Itoa(i.Limit), "held", strconv.Itoa(i.Held), "draining",
			strconv.Itoa(i.Draining),
			"waiting", strconv.Itoa(i.Waiting), "waited", span(i.Waited), "paused", moment(i.Paused), "reason",
			i.Reason)
	}})
}
