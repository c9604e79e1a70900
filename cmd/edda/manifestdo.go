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

func (t manifests) trigger() *cobra.Command {
	body, o := "", scheduler.TriggerOptions{}
	c := &cobra.Command{
		Use: "trigger MANIFEST", Short: "Queue a run of a manifest now, whatever its schedule says",
		Long: `Queue a run of a manifest, whatever its schedule says and whether it is paused or not. Each call is a run
of its own. It sends the manifest's message, or the JSON of --body as one of the same kind. The number that is printed
is the run's. Exit code 3: there is no such manifest, or no program declares it any more.`,
		Example: `  edda manifest trigger night/settle
  edda manifest trigger night/settle --body '{"day": "2026-11-20"}' --delay 10m`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("body") && !json.Valid([]byte(body)) {
				return usage(c, errors.New("--body is not JSON"))
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				input := saga.Message(nil)
				if c.Flags().Changed("body") {
					m, err := s.Manifest(ctx, args[0])
					if err != nil {
						return result{}, err
					}
					input = saga.Raw{Name: m.Kind, Body: []byte(body)}
				}
				run, err := s.Trigger(ctx, args[0], input, o)
				return lineOf(object{"run", run}, "Run %s is queued.", run), err
			})
		},
	}
	c.Flags().StringVar(&body, "body", "", "JSON of a message of the manifest's kind, in place of its own")
	c.Flags().DurationVar(&o.Delay, "delay", 0, "send it this much later")
	c.Flags().IntVar(&o.Priority, "priority", 0, "1 to 31; 0 is that of the manifest")
	return c
}

func (t manifests) pause() *cobra.Command {
	reason := ""
	return because("reason", &reason, &cobra.Command{
		Use: "pause MANIFEST --reason TEXT", Short: "Stop a manifest from firing until it is resumed",
		Long: `Stop a manifest from firing until "edda manifest resume". A deploy does not end the pause. Runs that
are queued or active go on: "edda run cancel" ends them. What falls due meanwhile is judged by the
misfire policy of the manifest when it is resumed.`,
		Example: `  edda manifest pause night/settle --reason "the bank is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Pause(ctx, args[0], reason) })
		},
	})
}

func (t manifests) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume MANIFEST", Short: "End a pause",
		Long: `End the pause of a manifest, and show what it waits for now: its declaration may stop it too, or its
group, or a dead run. That is not changed.`,
		Example: `  edda manifest resume night/settle`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Resume(ctx, args[0]) })
		},
	}
}

func (t manifests) remove() *cobra.Command {
	return &cobra.Command{
		Use: "remove MANIFEST", Short: "Make a manifest an orphan, which fires no more",
		Long: `Make a manifest an orphan: it fires no more, its runs that were not sent yet are cancelled, and after
some minutes a server deletes it with the record of its runs. A program that still declares it brings it back when it
starts the next time.`,
		Example: `  edda manifest remove night/settle`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Remove(ctx, args[0]) })
		},
	}
}

// change makes a change and shows how the manifest stands then.
func (t manifests) change(c *cobra.Command, name string,
	do func(ctx context.Context, s *scheduler.Store) error) error {
	return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
		if err := do(ctx, s); err != nil {
			return result{}, err
		}
		return shownManifest(ctx, s, name, false)
	})
}

func (t manifests) backfill() *cobra.Command {
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
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				if p.From, p.Until, err = t.period(ctx, from, until); err != nil {
					return result{}, err
				}
				done, err := s.Backfill(ctx, args[0], p)
				if err != nil {
					return result{}, err
				}
				return result{value: object{"queued", done.Queued, "present", done.Present, "next",
					jsonTime(done.Next)}, page: func(p *page) {
					p.line("%d runs are queued; %d due times had one.", done.Queued, done.Present)
					if !done.Next.IsZero() {
						p.line("There are more: --from %s", done.Next.UTC().Format(time.RFC3339Nano))
					}
				}}, nil
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "the first moment: 2026-11-21T10:00:00Z, or 2h for two hours ago (required)")
	c.Flags().StringVar(&until, "until", "", "the moment before which the last due time is (required)")
	c.Flags().IntVar(&p.Max, "max", 1000, "due times that are looked at, at most 10000")
	return c
}

// period reads two moments; "" is none. "Two hours ago" is measured by the database's clock.
func (t *tool) period(ctx context.Context, from, until string) (first, last time.Time, err error) {
	now, err := t.now(ctx)
	if err != nil {
		return first, last, err
	}
	if first, err = timeOf(from, now); err == nil {
		last, err = timeOf(until, now)
	}
	return first, last, err
}

const mostFile = 256 << 20

var errDiffers = errors.New("the declaration differs from what is stored")

func (t manifests) diff() *cobra.Command {
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
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				changes, err := s.DiffDeclaration(ctx, text)
				if err != nil {
					return result{}, err
				}
				if !changes.None() {
					if err := t.print(diffOf(changes)); err != nil {
						return result{}, err
					}
					return result{}, errDiffers
				}
				return diffOf(changes), nil
			})
		},
	}
}

func (t manifests) file(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(t.in, mostFile))
	}
	return os.ReadFile(name)
}

func changesOf(c scheduler.GroupChanges) object {
	changed := []object{}
	for _, change := range c.Changed {
		changed = append(changed, object{"name", change.Name, "what", change.What})
	}
	return object{"created", named(c.Created), "changed", changed, "orphaned", named(c.Orphaned), "unchanged",
		len(c.Unchanged)}
}

func named(list []string) []string { return append([]string{}, list...) }

func diffOf(c scheduler.Changes) result {
	manifests := scheduler.GroupChanges{Created: c.Created, Changed: c.Changed, Orphaned: c.Orphaned,
		Unchanged: c.Unchanged}
	value := append(changesOf(manifests), "groups", changesOf(c.Groups))
	return result{value: value, page: func(p *page) {
		for _, part := range []struct {
			what string
			scheduler.GroupChanges
		}{{"group", c.Groups}, {"manifest", manifests}} {
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
