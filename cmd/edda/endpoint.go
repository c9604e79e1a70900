package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/engine/partition"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

func (t endpoints) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "endpoint", Short: "Pause and resume endpoints, set their workers, change their partitions",
		Long: `Pause and resume endpoints, and set their workers, while they run. Each setting is a row of the database
and applies to every process of the endpoint, also to processes that start later. A process follows at once if it
listens, otherwise within its poll interval.`,
		Example: `  edda endpoint list
  edda endpoint pause orders --reason "the card service is down until 14:00"
  edda endpoint resume orders
  edda endpoint concurrency orders 2`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.pace(), t.pause(), t.resume(), t.concurrency(), t.partitions())
	return c
}

// endpoints has the commands that pause endpoints and set their workers.
type endpoints struct{ *tool }

func (t endpoints) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every installed endpoint and its settings",
		Long: `Show every installed endpoint, whether it is paused, and its settings. CONCURRENCY is the number of
workers of each process, and HISTORY the level of the history; "program" means that each program decides. BY is "relay"
for a queue that a relay carries to a broker; a relay has no workers. The list also has endpoints that no process
runs.`,
		Example: `  edda endpoint list
  edda endpoint list --json | jq '.endpoints[] | select(.paused)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				all, err := op.Endpoints().List(ctx)
				return listed(view.Endpoints(all), t.inSchema("No endpoint is installed in schema %q.")), err
			})
		},
	}
}

func (t endpoints) pace() *cobra.Command {
	return &cobra.Command{
		Use: "pace [ENDPOINT]", Short: "Show how many messages each endpoint has handled in the last 60 minutes",
		Long: `Show the work of each endpoint, or of one, in the last 60 minutes: how many messages it handled, how many
attempts failed and were retried, how many messages died, and a bar for each minute, the present minute last. A MINUTE
is the average of this hour and the hour before. Processes write their counters every ten seconds; relays do not count.
--json prints each minute, and each of 24 hours.`,
		Example: `  edda endpoint pace
  edda endpoint pace orders --json | jq '.paces[0].dead_by_minute'`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				all, err := op.Endpoints().Pace(ctx)
				if len(args) == 0 || err != nil {
					return listed(view.Paces(all), t.inSchema("No endpoint is installed in schema %q.")), err
				}
				at := slices.IndexFunc(all, func(p operate.Pace) bool { return p.Endpoint == args[0] })
				if at < 0 {
					return view.View{}, fmt.Errorf("%w: no endpoint has the name %s", operate.ErrNotInstalled,
						view.Escape(args[0]))
				}
				return view.Paces(all[at : at+1]).View(), nil
			})
		},
	}
}

// partOf reads a fraction: 10% or 0.1.
func partOf(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	part, err := strconv.ParseFloat(number, 64)
	if percent {
		part /= 100
	}
	if err != nil || !(part > 0 && part <= 1) {
		return 0, fmt.Errorf("--sample %s: want more than 0%% and up to 100%%, like 10%% or 0.1", view.Escape(text))
	}
	return part, nil
}

// keepHistory sets the level of history of an endpoint.
func (t endpoints) keepHistory() *cobra.Command {
	sample, reset := "", false
	c := &cobra.Command{
		Use: "set ENDPOINT [LEVEL]", Short: "Set the level of the history of an endpoint",
		Long: `Set the level of the history of an endpoint, in place of the level that its program sets: off, steps
(each attempt), states (also the state after each version) or bodies (also the bodies of messages). --sample sets the
part of the conversations that is recorded, each whole or not at all; failures are always recorded. A setting that you
leave out returns to the program's own, and --reset returns both.`,
		Example: `  edda history set orders bodies
  edda history set orders states --sample 10%
  edda history set orders --reset`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			o, set := history.Options{}, len(args) == 2 || sample != ""
			if reset == set {
				return usage(c, errors.New("give a level, --sample, or --reset"))
			}
			if len(args) == 2 {
				if o.Level, err = history.ParseLevel(args[1]); err != nil {
					return usage(c, err)
				}
			}
			if sample != "" {
				if o.Sample, err = partOf(sample); err != nil {
					return usage(c, err)
				}
			}
			return t.set(c, view.EndpointHistory(args[0], o),
				func(ctx context.Context, e operate.Endpoints) error { return e.SetHistory(ctx, args[0], o) })
		},
	}
	c.Flags().StringVar(&sample, "sample", "", "the part of the conversations to record, like 10%")
	c.Flags().BoolVar(&reset, "reset", false, "return to the level and the sample of each program")
	return c
}

func (t endpoints) pause() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use: "pause ENDPOINT", Short: "Stop an endpoint in all processes until it is resumed",
		Long: `Stop an endpoint in all processes until it is resumed. Running batches finish and no new one begins,
while messages still arrive. The pause also applies to programs that start later. A partitioned endpoint is paused with
all its partitions; the name of a partition, like orders.p3, pauses only that partition.`,
		Example: `  edda endpoint pause orders --reason "the card service is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.set(c, lineOf(view.Object{"paused", args[0], "reason", reason},
				"Endpoint %s is paused. \"edda endpoint resume %s\" ends that.", args[0], args[0]),
				func(ctx context.Context, e operate.Endpoints) error { return e.Pause(ctx, args[0], reason) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the log of the programs and for other people")
	return c
}

func (t endpoints) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume ENDPOINT", Short: "End the pause of an endpoint and of its partitions",
		Example: `  edda endpoint resume orders`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.set(c, lineOf(view.Object{"resumed", args[0]}, "Endpoint %s is resumed.", args[0]),
				func(ctx context.Context, e operate.Endpoints) error { return e.Resume(ctx, args[0]) })
		},
	}
}

func (t endpoints) concurrency() *cobra.Command {
	reset := false
	c := &cobra.Command{
		Use: "concurrency ENDPOINT (N | --reset)", Short: "Set how many workers each process of an endpoint has",
		Long: `Set how many workers each process of an endpoint has, 1 or more, or with --reset return to the number of
each program. New workers start at once; surplus workers end after their batch. A worker needs a connection while it
works: no process has more workers than the MaxConns of its pool, and the server must allow all these connections. 0 is
refused: "edda endpoint pause" stops an endpoint.`,
		Example: `  edda endpoint concurrency orders 2
  edda endpoint concurrency orders --reset`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if reset == (len(args) == 2) {
				return usage(c, errors.New("give a number of workers, or --reset"))
			}
			if reset {
				return t.set(c, lineOf(view.Object{"concurrency", nil, "endpoint", args[0]},
					"Each program of endpoint %s has its own number of workers.", args[0]),
					func(ctx context.Context, e operate.Endpoints) error { return e.ResetConcurrency(ctx, args[0]) })
			}
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 {
				return usage(c, fmt.Errorf("%s is not a number of workers: want 1 or more; \"edda endpoint pause\" "+
					"stops an endpoint", view.Escape(args[1])))
			}
			return t.set(c, lineOf(view.Object{"concurrency", n, "endpoint", args[0]},
				"Each process of endpoint %s has %s.", args[0], workers(n)),
				func(ctx context.Context, e operate.Endpoints) error { return e.SetConcurrency(ctx, args[0], n) })
		},
	}
	c.Flags().BoolVar(&reset, "reset", false, "return to the number of each program")
	return c
}

func (t endpoints) partitions() *cobra.Command {
	remove := false
	c := &cobra.Command{
		Use: "partitions ENDPOINT (N | --remove)", Short: "Change the number of partitions of an endpoint",
		Long: `Change the number of partitions of an endpoint, as the owner of the schema. Stop all its processes first:
the command fails while one runs. It moves all messages of the partitions, timeouts included, back to the endpoint's own
queue. Then set the same number in the program and start it: it moves the messages to their new partitions. --remove
removes the partitions. If the command is interrupted, the old number stays; run it again.`,
		Example: `  edda endpoint partitions orders 16
  edda endpoint partitions orders --remove`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if remove == (len(args) == 2) {
				return usage(c, errors.New("give a number of partitions, or --remove"))
			}
			n := 0
			if !remove {
				if n, err = strconv.Atoi(args[1]); err != nil || n < 1 || n > partition.Most {
					return usage(c, fmt.Errorf("%s is not a number of partitions: want 1 to %d, or --remove",
						view.Escape(args[1]), partition.Most))
				}
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				before, moved, err := op.Endpoints().SetPartitions(ctx, args[0], n)
				return partitioned(args[0], before, n, moved), err
			})
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the partitions")
	return c
}

func partitioned(endpoint string, before, after, moved int) view.View {
	now := view.Many(after, "partition", "partitions")
	if after == 0 {
		now = "no partitions"
	}
	return lineOf(
		view.Object{"endpoint", endpoint, "partitions", after, "before", before, "moved", moved},
		"Endpoint %s has %s, and had %d. %s went back to its own queue.", endpoint, now, before,
		view.Many(moved, "message", "messages"))
}

func workers(n int) string { return view.Many(n, "worker", "workers") }

// set makes a change and prints it.
func (t endpoints) set(c *cobra.Command, done view.View, do func(context.Context, operate.Endpoints) error) error {
	return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
		return done, do(ctx, op.Endpoints())
	})
}
