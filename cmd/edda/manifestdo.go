package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t *tool) manifestTrigger() *cobra.Command {
	body, o := "", scheduler.TriggerOptions{}
	c := &cobra.Command{
		Use: "trigger MANIFEST", Short: "Queue a run of a manifest now, whatever its schedule says",
		Long: `Queue a run of a manifest, whatever its schedule says and whether it is paused or not. Each call is a run
of its own. It sends the manifest's message, or the JSON of --body as one of the same kind. The number that is printed
is the run's. Exit code 3: there is no such manifest, or nobody declares it any more.`,
		Example: `  edda manifest trigger night/settle
  edda manifest trigger night/settle --body '{"day": "2026-11-20"}' --delay 10m`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("body") && !json.Valid([]byte(body)) {
				return usage(c, errors.New("--body is no JSON"))
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			input := saga.Message(nil)
			if c.Flags().Changed("body") {
				m, err := s.Manifest(ctx, args[0])
				if err != nil {
					return causeOf(ctx, err)
				}
				input = saga.Raw{Name: m.Kind, Body: []byte(body)}
			}
			run, err := s.Trigger(ctx, args[0], input, o)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(result{value: map[string]any{"run": run},
				page: func(p *page) { p.line("Run %s is queued.", run) }})
		},
	}
	c.Flags().StringVar(&body, "body", "", "JSON of a message of the manifest's kind, in place of its own")
	c.Flags().DurationVar(&o.Delay, "delay", 0, "send it so much later")
	c.Flags().IntVar(&o.Priority, "priority", 0, "1 to 31; 0 is that of the manifest")
	return c
}

// reasonFlag adds the flag of commands that stop something.
func reasonFlag(c *cobra.Command, reason *string) {
	c.Flags().StringVar(reason, "reason", "", "why, for those who look (required)")
}

func checkReason(c *cobra.Command, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return usage(c, errors.New("--reason is missing: say why, for those who wonder why nothing runs"))
	}
	return nil
}

func (t *tool) manifestPause() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use: "pause MANIFEST --reason TEXT", Short: "Let a manifest fire no more until it is resumed",
		Long: `Let a manifest fire no more until "edda manifest resume". A deploy does not undo it. Runs that are queued
or active go on: "edda run cancel" ends them. What falls due meanwhile is judged by the misfire policy of the manifest
when it is resumed.`,
		Example: `  edda manifest pause night/settle --reason "the bank is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkReason(c, reason); err != nil {
				return err
			}
			return t.changeManifest(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Pause(ctx, args[0], reason) })
		},
	}
	reasonFlag(c, &reason)
	return c
}

func (t *tool) manifestResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume MANIFEST", Short: "End a pause",
		Long: `End the pause of a manifest, and show what it waits for now: its declaration may stop it too, or its
group, or a dead run. That is not changed.`,
		Example: `  edda manifest resume night/settle`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.changeManifest(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Resume(ctx, args[0]) })
		},
	}
}

func (t *tool) manifestRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove MANIFEST", Short: "Give up a manifest that nobody should declare any more",
		Long: `Make a manifest an orphan: it fires no more, its runs that were not sent yet are cancelled, and after
some minutes a server deletes it with the record of its runs. A program that still declares it brings it back when it
starts the next time.`,
		Example: `  edda manifest remove night/settle`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.changeManifest(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Remove(ctx, args[0]) })
		},
	}
}

// changeManifest makes a change and shows how the manifest stands then.
func (t *tool) changeManifest(c *cobra.Command, name string,
	change func(ctx context.Context, s *scheduler.Store) error) error {
	ctx, s, err := t.openStore(c.Context())
	if err != nil {
		return err
	}
	if err := change(ctx, s); err != nil {
		return causeOf(ctx, err)
	}
	return t.showManifest(ctx, s, name, false)
}

func (t *tool) manifestBackfill() *cobra.Command {
	from, until, p := "", "", scheduler.Period{}
	c := &cobra.Command{
		Use: "backfill MANIFEST --from TIME --until TIME", Short: "Queue runs for due times of the past that have none",
		Long: `Queue a run for each due time in a period of the past that has none. A due time has one run, however
often this is asked for, as long as the record of it is kept. The runs do not wait for each other: a group with a cap
bounds how many are active. When there are more due times than --max, the output says where to go on.`,
		Example: `  edda manifest backfill night/settle --from 2026-11-01T00:00:00Z --until 2026-11-20T00:00:00Z
  edda manifest backfill poll/rates --from 6h --until 1h --max 5000`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			for flag, text := range map[string]string{"--from": from, "--until": until} {
				if _, err := timeOf(text, time.Time{}); err != nil || text == "" {
					return usage(c, fmt.Errorf(
						"%s %s: want a time like 2026-11-21T10:00:00Z, or how long ago, like 90m", flag, escape(text)))
				}
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			if p.From, p.Until, err = t.period(ctx, from, until); err != nil {
				return err
			}
			done, err := s.Backfill(ctx, args[0], p)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(result{value: map[string]any{"queued": done.Queued, "present": done.Present,
				"next": jsonTime(done.Next)}, page: func(p *page) {
				p.line("%d runs are queued; %d due times had one.", done.Queued, done.Present)
				if !done.Next.IsZero() {
					p.line("There are more: --from %s", done.Next.UTC().Format(time.RFC3339Nano))
				}
			}})
		},
	}
	c.Flags().StringVar(&from, "from", "", "the first moment: 2026-11-21T10:00:00Z, or 2h for two hours ago (required)")
	c.Flags().StringVar(&until, "until", "", "the moment before which the last due time is (required)")
	c.Flags().IntVar(&p.Max, "max", 1000, "due times that are looked at, at most 10000")
	return c
}

// period reads two moments; "" is none. What is so long ago is so by the database's clock.
func (t *tool) period(ctx context.Context, from, until string) (first, last time.Time, err error) {
	var now time.Time
	if err := t.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return first, last, fmt.Errorf("read the database's clock: %w", causeOf(ctx, err))
	}
	if first, err = timeOf(from, now); err == nil {
		last, err = timeOf(until, now)
	}
	return first, last, err
}

const mostFile = 256 << 20

var errDiffers = errors.New("the declaration differs from what is stored")

func (t *tool) manifestDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff FILE", Short: "Show what a declaration would change; nothing is written",
		Long: `Compare a declaration that a program wrote with scheduler.MarshalDeclaration with what is stored, and
show what the program would change when it starts. "-" reads the standard input. Nothing is written. Exit code 1: it
would change something.`,
		Example: `  edda manifest diff manifests.json
  shop-worker -print-manifests | edda manifest diff - --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := t.file(args[0])
			if err != nil {
				return err
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			changes, err := s.DiffDeclaration(ctx, text)
			if err != nil {
				return causeOf(ctx, err)
			}
			if err := t.print(diffOf(changes)); err != nil {
				return err
			}
			if !changes.None() {
				return errDiffers
			}
			return nil
		},
	}
}

func (t *tool) file(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(t.in, mostFile))
	}
	return os.ReadFile(name)
}

type changeJSON struct {
	Name string   `json:"name"`
	What []string `json:"what"`
}

func changesOf(list []scheduler.Change) []changeJSON {
	all := []changeJSON{}
	for _, c := range list {
		all = append(all, changeJSON(c))
	}
	return all
}

func named(list []string) []string { return append([]string{}, list...) }

func diffOf(c scheduler.Changes) result {
	value := map[string]any{
		"created": named(c.Created), "changed": changesOf(c.Changed), "orphaned": named(c.Orphaned),
		"unchanged": len(c.Unchanged),
		"groups": map[string]any{"created": named(c.Groups.Created), "changed": changesOf(c.Groups.Changed),
			"orphaned": named(c.Groups.Orphaned), "unchanged": len(c.Groups.Unchanged)},
	}
	return result{value: value, page: func(p *page) {
		for _, part := range []struct {
			what string
			scheduler.GroupChanges
		}{{"group", c.Groups}, {"manifest", scheduler.GroupChanges{Created: c.Created, Changed: c.Changed,
			Orphaned: c.Orphaned}}} {
			for _, name := range part.Created {
				p.line("+ %s %s", part.what, name)
			}
			for _, change := range part.Changed {
				p.line("~ %s %s: %s", part.what, change.Name, strings.Join(change.What, ", "))
			}
			for _, name := range part.Orphaned {
				p.line("- %s %s", part.what, name)
			}
		}
		p.line("%d to create, %d to change, %d to orphan, %d as they are.", len(c.Created), len(c.Changed),
			len(c.Orphaned), len(c.Unchanged))
	}}
}
