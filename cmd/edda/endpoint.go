package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

func (t *tool) endpointCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "endpoint", Short: "Pause and resume endpoints, and set their workers, while they run",
		Long: `Pause and resume endpoints, and set their workers, while they run. What is set is a row of the database:
it holds for every process of the endpoint, and for those that start later. They follow at once when they listen, else
within their poll interval.`,
		Example: `  edda endpoint list
  edda endpoint pause orders --reason "the card service is down until 14:00"
  edda endpoint resume orders
  edda endpoint concurrency orders 2`,
		RunE: group,
	}
	c.AddCommand(t.endpointList(), t.endpointPause(), t.endpointResume(), t.endpointConcurrency())
	return c
}

type endpointJSON struct {
	Endpoint    string     `json:"endpoint"`
	Paused      bool       `json:"paused"`
	PausedAt    *time.Time `json:"paused_at"`
	Reason      string     `json:"reason"`
	Concurrency *int       `json:"concurrency"` // null is the number of each program
	Relay       bool       `json:"relay"`
}

func (t *tool) endpointList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every endpoint that is installed, and what is set for it",
		Long: `Show every endpoint that is installed, whether it is paused, and how many workers each of its processes
has where that was set: "program" is the number of each program. BY says whether an endpoint or a relay consumes it,
which has no workers, carries it to a broker. The list does not tell which endpoints run.`,
		Example: `  edda endpoint list
  edda endpoint list --json | jq '.endpoints[] | select(.paused)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			knobs, err := op.Endpoints().List(ctx)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(t.endpointPage(knobs))
		},
	}
}

func (t *tool) endpointPage(knobs []operate.EndpointSettings) result {
	all := []endpointJSON{}
	rows := [][]string{{"ENDPOINT", "STATE", "SINCE", "REASON", "CONCURRENCY", "BY"}}
	for _, k := range knobs {
		j := endpointJSON{Endpoint: k.Endpoint, Paused: k.Paused, PausedAt: jsonTime(k.PausedAt), Reason: k.Reason,
			Relay: k.Relay}
		state, workers := "open", "program"
		if k.Relay {
			workers = "-"
		}
		if k.Paused {
			state = "paused"
		}
		if k.Concurrency > 0 {
			j.Concurrency, workers = &k.Concurrency, strconv.Itoa(k.Concurrency)
		}
		all = append(all, j)
		rows = append(rows, []string{k.Endpoint, state, moment(k.PausedAt), shortened(k.Reason, 60), workers,
			consumer(k.Relay)})
	}
	return result{value: map[string]any{"endpoints": all}, page: func(p *page) {
		if len(knobs) == 0 {
			p.line("No endpoint is installed in schema %q.", t.schemaName())
			return
		}
		p.table(rows)
	}}
}

func (t *tool) endpointPause() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use: "pause ENDPOINT", Short: "Stop an endpoint in all processes until it is resumed",
		Long: `Stop an endpoint in all processes until it is resumed. Batches in hand finish, no other begins, and
messages go on arriving. The pause holds for programs that start later too.`,
		Example: `  edda endpoint pause orders --reason "the card service is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.turn(c, map[string]any{"paused": args[0], "reason": reason},
				fmt.Sprintf("Endpoint %s is paused. \"edda endpoint resume %s\" ends that.", args[0], args[0]),
				func(ctx context.Context, op *operate.Operator) error {
					return op.Endpoints().Pause(ctx, args[0],
						reason)
				})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the log of the programs and for whoever looks")
	return c
}

func (t *tool) endpointResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume ENDPOINT", Short: "End the pause of an endpoint",
		Example: `  edda endpoint resume orders`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.turn(c, map[string]any{"resumed": args[0]}, fmt.Sprintf("Endpoint %s is not paused.", args[0]),
				func(ctx context.Context, op *operate.Operator) error { return op.Endpoints().Resume(ctx, args[0]) })
		},
	}
}

func (t *tool) endpointConcurrency() *cobra.Command {
	reset := false
	c := &cobra.Command{
		Use: "concurrency ENDPOINT (N | --reset)", Short: "Set how many workers each process of an endpoint has",
		Long: `Set how many workers each process of an endpoint has, from 1 on, or with --reset give every program its
own number back. More workers start at once; those that are too many end after the batch in their hands. A worker needs
a connection while it works: no process has more workers than the MaxConns of its pool, and the server must allow them
all. Nothing is stopped by a zero: "edda endpoint pause" does that.`,
		Example: `  edda endpoint concurrency orders 2
  edda endpoint concurrency orders --reset`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if reset == (len(args) == 2) {
				return usage(c, errors.New("give a number of workers, or --reset"))
			}
			if reset {
				return t.turn(c, map[string]any{"endpoint": args[0], "concurrency": nil},
					fmt.Sprintf("Each program of endpoint %s has its own number of workers.", args[0]),
					func(ctx context.Context,
						op *operate.Operator) error {
						return op.Endpoints().ResetConcurrency(ctx, args[0])
					})
			}
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 {
				return usage(c, fmt.Errorf("%s is no number of workers: want 1 or more; \"edda endpoint pause\" "+
					"stops an endpoint", escape(args[1])))
			}
			return t.turn(c, map[string]any{"endpoint": args[0], "concurrency": n},
				fmt.Sprintf("Each process of endpoint %s has %s.", args[0], workers(n)),
				func(ctx context.Context, op *operate.Operator) error {
					return op.Endpoints().SetConcurrency(ctx,
						args[0], n)
				})
		},
	}
	c.Flags().BoolVar(&reset, "reset", false, "give every program its own number back")
	return c
}

func workers(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

// turn does what a command sets, and says so.
func (t *tool) turn(c *cobra.Command, value map[string]any, done string,
	do func(ctx context.Context, op *operate.Operator) error) error {
	ctx, op, err := t.open(c.Context())
	if err != nil {
		return err
	}
	if err := do(ctx, op); err != nil {
		return causeOf(ctx, err)
	}
	return t.print(result{value: value, page: func(p *page) { p.line("%s", done) }})
}
