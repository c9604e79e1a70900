package main

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t queues) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "queue", Short: "Show the messages that wait for endpoints, and cancel them",
		Example: `  edda queue list
  edda queue peek orders --limit 5 --body
  edda queue show 0198c0de-0000-7000-8000-000000000001
  edda queue cancel orders 0198c0de-0000-7000-8000-000000000001 --reason 'ordered twice'`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.peek(), t.show(), t.cancel())
	return c
}

// queues has the commands that list and cancel waiting messages.
type queues struct{ *tool }

func (t queues) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every queue: how many messages wait, and for how long",
		Long: fmt.Sprintf(`Show every queue: how many messages are due (READY), how many are due later (DELAYED: delays,
timeouts, retries), how many a leased endpoint is handling (CLAIMED), how many wait behind others of their key (PARKED,
in ordered endpoints), how long the first ready message has been due (LAG), whether an endpoint consumes the queue or a
relay carries it to a broker (BY), and the kinds that are sent or published to it.

Messages are counted one by one up to %d; a larger number is an estimate, and marked with "~". The command locks
nothing.`,
			operate.CountLimit),
		Example: `  edda queue list
  edda queue list --json | jq '.queues[] | select(.lag_seconds > 60)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				infos, err := op.Queues().List(ctx)
				return listed(view.Queues(infos), t.inSchema("No endpoint is installed in schema %q.")), err
			})
		},
	}
}

func (t queues) cancel() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel ENDPOINT ID", Short: "Cancel one message, waiting or running",
		Long: `Cancel one message by its id. If the message waits, also if it is due later, it is deleted from the queue
and recorded as discarded. If the handler of a leased endpoint runs with the message, its context is cancelled: the
message is discarded if the handler returns an error, and handled if it returns nil. The command reads the whole queue,
because it has no index of ids.`,
		Example: `  edda queue cancel orders 0198c0de-0000-7000-8000-000000000001 --reason 'ordered twice'`,
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[1])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", view.Escape(args[1])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				did, err := op.Messages().Cancel(ctx, args[0], id, reason)
				if err != nil {
					return view.View{}, err
				}
				running, done := did == operate.CancelledRunning, "Message %s was deleted from the queue and "+
					"recorded as discarded."
				if running {
					done = "The cancellation of the handler of message %s was requested."
				}
				return lineOf(view.Object{"id", id, "running", running}, done, id), nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

func (t queues) peek() *cobra.Command {
	var (
		o      operate.PeekOptions
		after  string
		bodies bool
	)
	c := &cobra.Command{
		Use: "peek ENDPOINT", Short: "Show the messages at the head of a queue",
		Long: `Show messages of a queue in the order of their due times, also messages that a worker is handling, and
change nothing. ATTEMPT is the number of the next attempt, LAST ERROR the error of the last attempt. Bodies are shown
with --body only, because they may be confidential.`,
		Example: `  edda queue peek orders
  edda queue peek orders --limit 200 --after 2026-11-21T10:00:00.000001Z/0198c0de-0000-7000-8000-000000000001
  edda queue peek orders --body --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if o.AfterDue, o.AfterID, err = placeAfter(c, after); err != nil {
				return err
			}
			if o.Limit < 0 || o.BodyBytes < 0 {
				return usage(c, fmt.Errorf("--limit and --body-bytes must not be negative"))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				messages, err := op.Messages().Peek(ctx, args[0], o)
				return listed(view.Peeked(messages, o.Limit, bodies), "No message waits here."), err
			})
		},
	}
	c.Flags().IntVar(&o.Limit, "limit", 20, "messages, at most 200")
	c.Flags().StringVar(&after, "after", "", "continue after this message, given as DUE/ID: the end of the page before")
	c.Flags().BoolVar(&bodies, "body", false, "show bodies")
	c.Flags().IntVar(&o.BodyBytes, "body-bytes", 4096, "how much of each body, at most 65536")
	return c
}

// placeAfter reads the value of --after: TIME/ID.
func placeAfter(c *cobra.Command, text string) (at time.Time, id saga.ID, err error) {
	if at, id, err = view.ReadPlace(text); err != nil {
		err = usage(c, fmt.Errorf("--after %s: %w", view.Escape(text), err))
	}
	return at, id, err
}

func (t queues) show() *cobra.Command {
	bodies, bytes := false, 0
	c := &cobra.Command{
		Use: "show ID", Short: "Find one message in any queue, and show all its data",
		Long: `Find one message in any queue by its id, and show its data: the due time, the number of the next attempt,
the error of the last attempt, and the session that handles it. An event is shown once for each queue that has a copy.
Queues have no index of ids, so the command reads all of them. The body is shown with --body only. Exit code 3: no queue
has the message; it was handled, or is a dead letter (edda dead list --message ID).`,
		Example: `  edda queue show 0198c0de-0000-7000-8000-000000000001
  edda queue show 0198c0de-0000-7000-8000-000000000001 --body --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", view.Escape(args[0])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				found, err := op.Messages().Show(ctx, id, bytes)
				return view.Found(found, bodies), err
			})
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show the body")
	c.Flags().IntVar(&bytes, "body-bytes", 4096, "how much of the body, at most 65536")
	return c
}
