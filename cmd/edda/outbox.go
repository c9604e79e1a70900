package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t *tool) outboxCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "outbox", Short: "Show what relays gave to other systems, and give it to them again",
		Long: `A relay that keeps copies (bus.RelayOptions.Keep) leaves one of each message that it gave to the other
side. Copies stay for the time that "edda outbox keep" shows, and a third longer at most.`,
		Example: `  edda outbox list shop.events --since 2h
  edda outbox show 0198c0de-0000-7000-8000-000000000001 --body
  edda outbox replay shop.events --since 2h`,
		RunE: group,
	}
	c.AddCommand(t.outboxList(), t.outboxShow(), t.outboxReplay(),
		t.keepCommand(outbox.Outbox, "copies of relayed messages"))
	return c
}

func (t *tool) inboxCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "inbox", Short: "Say how long ids of messages from other systems are remembered",
		Example: `  edda inbox keep
  edda inbox keep 336h`,
		RunE: group,
	}
	c.AddCommand(t.keepCommand(outbox.Inbox, "ids of messages from other systems"))
	return c
}

type keptJSON struct {
	Endpoint string     `json:"endpoint"`
	ID       saga.ID    `json:"id"`
	Kind     string     `json:"kind"`
	Sent     *time.Time `json:"sent"`
	Relayed  time.Time  `json:"relayed"`
	Size     int        `json:"size"`
	Header   string     `json:"header"`
	body
}

func keptOf(k outbox.Kept) keptJSON {
	return keptJSON{Endpoint: k.Endpoint, ID: k.ID, Kind: k.Kind, Sent: jsonTime(k.Sent), Relayed: k.Relayed.UTC(),
		Size: k.Size, Header: string(k.Header)}
}

// keptFlags choose copies on a command line.
type keptFlags struct {
	kind, since, until, after string
}

func (f *keptFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.kind, "kind", "", "only those of this kind")
	c.Flags().StringVar(&f.since, "since", "", "only those that were relayed then or later: 2026-11-21T10:00:00Z, "+
		"or 2h for two hours ago")
	c.Flags().StringVar(&f.until, "until", "", "only those that were relayed earlier than that")
	c.Flags().StringVar(&f.after, "after", "", "go on behind this one, given as RELAYED/ID: the end of the page before")
}

// check reads what needs no database.
func (f *keptFlags) check(c *cobra.Command) error {
	for name, text := range map[string]string{"--since": f.since, "--until": f.until} {
		if _, err := timeOf(text, time.Time{}); err != nil {
			return usage(c, fmt.Errorf("%s %s: %w", name, escape(text), err))
		}
	}
	if _, _, err := place(f.after); err != nil {
		return usage(c, err)
	}
	return nil
}

// read is the filter. It ends now unless it says otherwise, by the database's clock: what is put back is relayed again.
func (f *keptFlags) read(now time.Time, endpoint string) (filter outbox.KeptFilter, after outbox.KeptPlace) {
	filter = outbox.KeptFilter{Endpoint: endpoint, Kind: f.kind, Until: now}
	filter.Since, _ = timeOf(f.since, now) // check has read them once
	if f.until != "" {
		filter.Until, _ = timeOf(f.until, now)
	}
	after.Relayed, after.ID, _ = place(f.after)
	return filter, after
}

// now is the database's clock.
func (t *tool) now(ctx context.Context) (now time.Time, err error) {
	if err := t.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's clock: %w", causeOf(ctx, err))
	}
	return now, nil
}

func placeText(p outbox.KeptPlace) string {
	return p.Relayed.UTC().Format(time.RFC3339Nano) + "/" + p.ID.String()
}

func (t *tool) outboxList() *cobra.Command {
	flags, limit := &keptFlags{}, 0
	c := &cobra.Command{
		Use: "list RELAY", Short: "Show messages that a relay gave to the other side, in that order",
		Example: `  edda outbox list shop.events
  edda outbox list shop.events --since 2h --kind order.paid`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(c); err != nil {
				return err
			}
			if limit < 1 || limit > outbox.MostKept {
				return usage(c, fmt.Errorf("--limit is %d, want 1 to %d", limit, outbox.MostKept))
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			now, err := t.now(ctx)
			if err != nil {
				return err
			}
			filter, after := flags.read(now, args[0])
			page, err := op.Outbox().ListKept(ctx, t.pool, filter, after, limit)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(keptList(page.Found, page.Next, page.More))
		},
	}
	flags.add(c)
	c.Flags().IntVar(&limit, "limit", 50, "messages to look at, at most 1000; with --kind fewer are shown")
	return c
}

func keptList(found []outbox.Kept, next outbox.KeptPlace, more bool) result {
	list, rows, place := []keptJSON{}, [][]string{{"RELAYED", "ID", "KIND", "SENT", "BYTES"}}, ""
	for _, k := range found {
		list = append(list, keptOf(k))
		rows = append(rows, []string{moment(k.Relayed), k.ID.String(), k.Kind, moment(k.Sent), strconv.Itoa(k.Size)})
	}
	if more {
		place = placeText(next)
	}
	return result{value: map[string]any{"messages": list, "next": place}, page: func(p *page) {
		if len(found) == 0 {
			p.line("No copy of such a message is kept.")
		} else {
			p.table(rows)
		}
		if more {
			p.line("There may be more: --after %s", place)
		}
	}}
}

func (t *tool) outboxShow() *cobra.Command {
	withBody := false
	c := &cobra.Command{
		Use: "show ID", Short: "Show the copies of one relayed message, with its body with --body",
		Long: `Show the copies of one message by its id: more than one when it was relayed more than once, or by several
relays. Exit code 3: there is none.`,
		Example: `  edda outbox show 0198c0de-0000-7000-8000-000000000001 --body`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", escape(args[0])))
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			found, err := op.Outbox().ShowKept(ctx, t.pool, id)
			if err != nil {
				return causeOf(ctx, err)
			}
			if len(found) == 0 {
				return fmt.Errorf("no copy of message %s is kept: %w", id, errNotFound)
			}
			return t.print(keptShown(found, withBody))
		},
	}
	c.Flags().BoolVar(&withBody, "body", false, "show the body")
	return c
}

func keptShown(found []outbox.Kept, withBody bool) result {
	list := []keptJSON{}
	for _, k := range found {
		j := keptOf(k)
		if withBody {
			j.body = bodyOf(k.Body)
		}
		list = append(list, j)
	}
	return result{value: map[string]any{"messages": list}, page: func(p *page) {
		for _, k := range found {
			p.fields("relay", k.Endpoint, "message", k.ID.String(), "kind", k.Kind, "sent", moment(k.Sent), "relayed",
				moment(k.Relayed),
				"header", string(k.Header), "body", fmt.Sprintf("%d bytes", k.Size))
			if withBody {
				p.block(pretty(k.Body))
			}
		}
	}}
}

func (t *tool) outboxReplay() *cobra.Command {
	flags := &keptFlags{}
	c := &cobra.Command{
		Use: "replay RELAY --since TIME", Short: "Put relayed messages back into the queue of their relay, which " +
			"gives them to the other side again",
		Long: `Put copies of relayed messages back into the queue of their relay, in the order in which they were
relayed, with their ids, headers and bytes: for another side that has lost what it had. A receiver that still knows the
ids takes none of them twice; one that does not handles them again. It goes in transactions of at most 500 messages.
When it is interrupted it says how to go on.`,
		Example: `  edda outbox replay shop.events --since 2026-11-21T10:00:00Z --until 2026-11-21T11:00:00Z
  edda outbox replay shop.events --since 2h --kind order.paid`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(c); err != nil {
				return err
			}
			if flags.since == "" && flags.after == "" {
				return usage(c, errors.New("--since is missing: say from when on the other side is to be told again"))
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
						t.say(fmt.Sprintf("edda: %d messages were put back; \"edda outbox replay %s --after %s "+
							"--until %s\" goes on", sum, escape(args[0]),
							placeText(o.After), o.Filter.Until.UTC().Format(time.RFC3339Nano)))
					}
					return causeOf(ctx, err)
				}
				sum += done.Messages
				o.After, more = done.Place, done.More
			}
			return t.print(result{value: map[string]any{"replayed": sum}, page: func(p *page) {
				p.line("%d messages were put back into the queue of %s.", sum, args[0])
			}})
		},
	}
	flags.add(c)
	return c
}

// keepCommand shows or sets how long a ring keeps its rows.
func (t *tool) keepCommand(ring outbox.Ring, what string) *cobra.Command {
	return &cobra.Command{
		Use: "keep [DURATION]", Short: "Show, or set, for how long " + what + " are kept",
		Long: fmt.Sprintf(`Show, or set, for how long %s are kept: so long at least, and a third longer at most, since
they are forgotten a third at a time.`, what),
		Example: fmt.Sprintf("  edda %s keep\n  edda %s keep 336h", ring, ring),
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var keep time.Duration
			if len(args) > 0 {
				var err error
				if keep, err = time.ParseDuration(args[0]); err != nil {
					return usage(c, fmt.Errorf("%s: want a duration like 168h", escape(args[0])))
				}
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if err := op.Outbox().SetKeep(ctx, pg.Committed(t.pool), ring, keep); err != nil {
					return causeOf(ctx, err)
				}
			}
			rings, err := op.Outbox().Rings(ctx, t.pool)
			if err != nil {
				return causeOf(ctx, err)
			}
			for _, r := range rings {
				if r.Ring == ring {
					return t.print(result{
						value: map[string]any{"ring": r.Ring, "keep_seconds": r.Keep.Seconds(), "slot": r.Slot,
							"since": r.Since.UTC()},
						page: func(p *page) {
							p.line("The %s is kept for %v; its last turn was at %s.", r.Ring, r.Keep, moment(r.Since))
						},
					})
				}
			}
			return fmt.Errorf("there is no ring of %s: %w", ring, errNotFound)
		},
	}
}
