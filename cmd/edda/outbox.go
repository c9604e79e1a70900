package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

// border has the commands for messages to and from other systems.
type border struct{ *tool }

func (t border) outboxCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "outbox", Short: "Show the messages that relays sent to other systems, and send them again",
		Long: `A relay that keeps copies (outbox.RelayOptions.Keep) stores a copy of each message that the other side
accepted. Copies stay for the time that "edda outbox keep" shows, and at most a third longer.`,
		Example: `  edda outbox list shop.events --since 2h
  edda outbox show 0198c0de-0000-7000-8000-000000000001 --body
  edda outbox replay shop.events --since 2h`,
		RunE: group,
	}
	c.AddCommand(t.outboxList(), t.outboxShow(), t.outboxReplay(),
		t.keepCommand(ring.Outbox, "copies of relayed messages"))
	return c
}

func (t border) inboxCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "inbox", Short: "Show or set how long ids of messages from other systems are remembered",
		Example: `  edda inbox keep
  edda inbox keep 336h`,
		RunE: group,
	}
	c.AddCommand(t.keepCommand(ring.Inbox, "ids of messages from other systems"))
	return c
}

// keptFlags select copies on a command line.
type keptFlags struct {
	kind, since, until, after string
}

func (f *keptFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.kind, "kind", "", "only messages of this kind")
	c.Flags().StringVar(&f.since, "since", "", "only messages relayed at this time or later: 2026-11-21T10:00:00Z, "+
		"or 2h for two hours ago")
	c.Flags().StringVar(&f.until, "until", "", "only messages relayed before this time")
	c.Flags().StringVar(&f.after, "after", "", "continue after this one, given as RELAYED/ID: "+
		"the end of the page before")
}

// check reads the flags that need no database.
func (f *keptFlags) check(c *cobra.Command) error {
	if err := checkTimes(c, "since", f.since, "until", f.until); err != nil {
		return err
	}
	_, _, err := placeAfter(c, f.after)
	return err
}

// read returns the filter. Without --until it ends now, by the database's clock, because messages that are put back are
// relayed again.
func (f *keptFlags) read(now time.Time, endpoint string) (filter outbox.KeptFilter, after outbox.KeptPlace) {
	filter = outbox.KeptFilter{Endpoint: endpoint, Kind: f.kind, Until: now}
	filter.Since, _ = view.ReadTime(f.since, now) // check has read them before
	if f.until != "" {
		filter.Until, _ = view.ReadTime(f.until, now)
	}
	after.Relayed, after.ID, _ = view.ReadPlace(f.after)
	return filter, after
}

func (t border) outboxList() *cobra.Command {
	flags, limit := &keptFlags{}, 0
	c := &cobra.Command{
		Use: "list RELAY", Short: "Show messages that a relay gave to the other side, in the order of delivery",
		Example: `  edda outbox list shop.events
  edda outbox list shop.events --since 2h --kind order.paid`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(c); err != nil {
				return err
			}
			if limit < 1 || limit > outbox.MaxKept {
				return usage(c, fmt.Errorf("--limit is %d, want 1 to %d", limit, outbox.MaxKept))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				now, err := t.now(ctx)
				if err != nil {
					return view.View{}, err
				}
				filter, after := flags.read(now, args[0])
				page, err := op.Outbox().ListKept(ctx, t.pool, filter, after, limit)
				return listed(view.Kept(page), "No copy of a message matches."), err
			})
		},
	}
	flags.add(c)
	c.Flags().IntVar(&limit, "limit", 50, "messages to look at, at most 1000; with --kind fewer are shown")
	return c
}

func (t border) outboxShow() *cobra.Command {
	withBody := false
	c := &cobra.Command{
		Use: "show ID", Short: "Show the copies of one relayed message, with its body with --body",
		Long: `Show the copies of one message by its id. A message has several copies if it was relayed more than once,
or by several relays. Exit code 3: there is no copy.`,
		Example: `  edda outbox show 0198c0de-0000-7000-8000-000000000001 --body`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", view.Escape(args[0])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				found, err := op.Outbox().ShowKept(ctx, t.pool, id)
				if err != nil {
					return view.View{}, err
				}
				if len(found) == 0 {
					return view.View{}, fmt.Errorf("no copy of message %s is kept: %w", id, errNotFound)
				}
				return view.Copies(found, withBody), nil
			})
		},
	}
	c.Flags().BoolVar(&withBody, "body", false, "show the body")
	return c
}

func (t border) outboxReplay() *cobra.Command {
	flags := &keptFlags{}
	c := &cobra.Command{
		Use: "replay RELAY --since TIME", Short: "Put relayed messages back into the queue of their relay, which " +
			"gives them to the other side again",
		Long: `Put copies of relayed messages back into the queue of their relay, in the order of their delivery, with
their ids, headers and bytes, when the other system has lost them. A receiver that remembers an id drops the message; a
receiver that does not handles it again. The command writes transactions of at most 500 messages. If it is interrupted,
it prints how to continue.`,
		Example: `  edda outbox replay shop.events --since 2026-11-21T10:00:00Z --until 2026-11-21T11:00:00Z
  edda outbox replay shop.events --since 2h --kind order.paid`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(c); err != nil {
				return err
			}
			if flags.since == "" && flags.after == "" {
				return usage(c, errors.New("--since is missing: give the time of the first message to send again"))
			}
			ctx, op, err := t.openWithin(c.Context(), t.unbounded(c))
			if err != nil {
				return err
			}
			now, err := t.now(ctx)
			if err != nil {
				return err
			}
			o := operate.ReplayOptions{}
			o.Filter, o.After = flags.read(now, args[0])
			sum := 0
			for more := true; more; {
				done, err := op.Replay(ctx, o)
				if err != nil {
					if sum > 0 {
						t.say(fmt.Sprintf("edda: %s put back; \"edda outbox replay %s --after %s "+
							"--until %s\" continues", view.Many(sum, "message was", "messages were"),
							view.Escape(args[0]),
							view.PlaceText(o.After.Relayed.UTC(), o.After.ID),
							o.Filter.Until.UTC().Format(time.RFC3339Nano)))
					}
					return causeOf(ctx, err)
				}
				sum += done.Messages
				o.After, more = done.Place, done.More
			}
			return t.print(lineOf(view.Object{"replayed", sum}, "%s put back into the queue of %s.",
				view.Many(sum, "message was", "messages were"), args[0]))
		},
	}
	flags.add(c)
	return c
}

// keepCommand shows or sets the retention of a ring, and for the history the maximum size.
func (t border) keepCommand(of ring.Name, what string) *cobra.Command {
	size := ""
	c := &cobra.Command{
		Use: "keep [DURATION]", Short: "Show or set for how long " + what + " are kept",
		Long: fmt.Sprintf(`Show or set for how long %s are kept. They stay at most a third longer, because they are
deleted a third at a time.`, what),
		Example: fmt.Sprintf("  edda %s keep\n  edda %s keep 336h", of, of),
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			keep, most := time.Duration(0), int64(-1)
			if len(args) > 0 {
				if keep, err = time.ParseDuration(args[0]); err != nil || keep <= 0 {
					return usage(c, fmt.Errorf("%s: want a duration like 168h", view.Escape(args[0])))
				}
			}
			if size != "" {
				if most, err = view.ReadBytes(size); err != nil {
					return usage(c, fmt.Errorf("--size %s: %w", view.Escape(size), err))
				}
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				if err := op.SetKeep(ctx, string(of), keep, most); err != nil {
					return view.View{}, err
				}
				rings, err := op.Rings(ctx)
				if err != nil {
					return view.View{}, err
				}
				for _, r := range rings {
					if r.Name == string(of) {
						return view.Ring(r), nil
					}
				}
				return view.View{}, fmt.Errorf("there is no retention of %s: %w", of, errNotFound)
			})
		},
	}
	if of == ring.History {
		c.Long += ` They are deleted earlier when the tables are larger than --size.`
		c.Example += "\n  edda history keep --size 20GB"
		c.Flags().StringVar(&size, "size", "", "maximum size of the tables, like 500MB or 20GB; 0 is no limit")
	}
	return c
}
