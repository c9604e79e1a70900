package main

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/spf13/cobra"
)

const vitalsHelp = `Show the conditions of the database that slow down Edda's queues, or will soon, the worst first.

The command reads the holder of the oldest snapshot, dead rows and vacuum of the tables, connections, the write-ahead
log, replication slots, the age of transaction ids, and some settings. It prints each value with its limits for a
warning and for bad, and a remedy. It applies no remedy.

It reads twice, --over apart, to measure the write-ahead log. It takes no lock that a worker waits for, and waits for a
lock at most three seconds. A role with pg_read_all_stats can read more.

The exit code is 0 whatever the values are.`

func (t *tool) vitalsCommand() *cobra.Command {
	var over time.Duration
	c := &cobra.Command{
		Use: "vitals", Short: "Show the conditions of the database that slow down the queues", Long: vitalsHelp,
		Example: `  edda vitals
  edda vitals --over 10s
  edda vitals --json | jq '.vitals[] | select(.level != "ok") | .sentence'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if over < 0 || over > time.Hour {
				return usage(c, fmt.Errorf("--over %v: want 0 (read once) to 1h", over))
			}
			return t.operate(c, func(ctx context.Context, _ *operate.Operator) (view.View, error) {
				reader, err := vitals.New(t.pool, vitals.Options{Schema: t.schemaName()})
				if err != nil {
					return view.View{}, err
				}
				found, err := reader.Read(ctx)
				if err == nil && over > 0 {
					select {
					case <-time.After(over):
						found, err = reader.Read(ctx)
					case <-ctx.Done():
						err = context.Cause(ctx)
					}
				}
				return view.Vitals(&found), err
			})
		},
	}
	c.Flags().DurationVar(&over, "over", time.Second, "how long to measure the write-ahead log; 0 does not measure it")
	return c
}
