package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t manifests) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "manifest", Short: "Show, trigger, pause and backfill the manifests of the scheduler",
		Long: `Show and change the manifests of the scheduler. A manifest declares which message the scheduler sends,
and when. One firing of a manifest is a run.`,
		Example: `  edda manifest list --state held
  edda manifest show night/settle
  edda manifest trigger night/settle --body '{"day": "2026-11-20"}'
  edda manifest pause night/settle --reason "the bank is down until 14:00"
  edda manifest next night/settle 7`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.show(), t.next(), t.trigger(), t.pause(),
		t.resume(),
		t.backfill(), t.remove(), t.diff(), t.releases())
	return c
}

// manifests has the commands for the manifests of the scheduler.
type manifests struct{ *tool }

func (t manifests) list() *cobra.Command {
	f, state := scheduler.ManifestFilter{}, ""
	c := &cobra.Command{
		Use: "list", Short: "Show manifests: when they are due, and whether they fire",
		Long: `Show manifests in the order of their names. STATE is "live"; "paused", by its declaration, by an operator
or with its group; "held" by a dead run; or "orphan", when no program declares it any more. DUE is the next firing, and
empty if the manifest has no clock.`,
		Example: `  edda manifest list
  edda manifest list --state held
  edda manifest list --owner shop --prefix night/ --json | jq '.manifests[].due'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.State = scheduler.ManifestState(state); f.Limit < 1 || f.Limit > scheduler.MaxLimit {
				return usage(c, fmt.Errorf("--limit %d: want 1 to %d", f.Limit, scheduler.MaxLimit))
			}
			if !strings.Contains(" live paused held orphan ", " "+state+" ") && state != "" {
				return usage(c, fmt.Errorf("--state %s: want live, paused, held or orphan", view.Escape(state)))
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				list, err := s.Manifests(ctx, f)
				return listed(view.Manifests(list, f.Limit), "No such manifest."), err
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Prefix, "prefix", "", "only manifests whose names begin with this")
	flags.StringVar(&f.Owner, "owner", "", "only manifests that this program declares")
	flags.StringVar(&f.Group, "group", "", "only manifests of this group")
	flags.StringVar(&state, "state", "", "only manifests in this state: live, paused, held or orphan")
	flags.StringVar(&f.After, "after", "", "continue after the manifest of this name")
	flags.IntVar(&f.Limit, "limit", 100, "manifests, at most 1000")
	return c
}

func (t manifests) releases() *cobra.Command {
	owner := ""
	c := &cobra.Command{
		Use: "releases", Short: "Show which releases of a program declare manifests, and which of them decides",
		Long: `Show the releases that run, or that ran within the last hour. A release is one declaration of an owner.
While programs of several releases of an owner run, the release with the largest number decides about a manifest that
several of them declare. DECLARED OTHERWISE names manifests of a release that the deciding release declares with other
contents, and DECLARED HERE ALONE the manifests that the deciding release omits.`,
		Example: `  edda manifest releases
  edda manifest releases --owner shop --json | jq '.releases[] | select(.decides) | .programs'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.schedule(c, func(ctx context.Context, _ *scheduler.Store) (view.View, error) {
				schema, err := pg.ParseSchema(t.schemaName())
				if err != nil {
					return view.View{}, err
				}
				list, err := dispatch.Releases(ctx, t.pool, schema, owner)
				return shownReleases(list), err
			})
		},
	}
	c.Flags().StringVar(&owner, "owner", "", "only releases of this program")
	return c
}

func shownReleases(all []dispatch.Release) view.View {
	rows, shown := []view.Object{}, view.Table{Columns: strings.Split(
		"RELEASE|OWNER|DECIDES|PROGRAMS|MANIFESTS|DECLARED OTHERWISE|DECLARED HERE ALONE|SINCE|SEEN", "|")}
	for _, r := range all {
		programs, hosts, decides := []view.Object{}, []string{}, ""
		for _, p := range r.Programs {
			programs = append(programs, view.Object{"host", p.Host, "pid", p.PID, "started", p.Started.UTC()})
			hosts = append(hosts, fmt.Sprintf("%s:%d", p.Host, p.PID))
		}
		if r.Decides {
			decides = "yes"
		}
		rows = append(rows, view.Object{"release", r.Number, "owner", r.Owner, "decides", r.Decides,
			"since", r.First.UTC(), "seen", r.Seen.UTC(), "programs", programs,
			"manifests", append([]string{}, r.Manifests...), "differs", append([]string{}, r.Differs...),
			"alone", append([]string{}, r.Alone...)})
		shown.Rows = append(shown.Rows, []string{strconv.FormatInt(r.Number, 10), r.Owner, decides,
			fmt.Sprintf("%d %s", len(hosts), view.Shortened(strings.Join(hosts, " "), 60)),
			strconv.Itoa(len(r.Manifests)), view.Shortened(strings.Join(r.Differs, " "), 60),
			view.Shortened(strings.Join(r.Alone, " "), 60), view.Moment(r.First), view.Moment(r.Seen)})
	}
	v := view.View{JSON: view.Object{"releases", rows}, Parts: []view.Part{shown}}
	if len(all) == 0 {
		v.Parts = []view.Part{view.Line("No program has declared manifests within the last hour.")}
	}
	return v
}

func (t manifests) show() *cobra.Command {
	bodies := false
	c := &cobra.Command{
		Use: "show MANIFEST", Short: "Show one manifest, and why it does not fire at this moment",
		Long: `Show one manifest, and why it does not fire now: a pause with its author and reason, its group, an open
run, a dead run that holds it, or the time of its next due moment. Its message is shown with --body only. Exit code 3:
there is no such manifest.`,
		Example: `  edda manifest show night/settle
  edda manifest show night/settle --json | jq -r '.waits[]'`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				return shownManifest(ctx, s, args[0], bodies)
			})
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show its message")
	return c
}

func shownManifest(ctx context.Context, s *scheduler.Store, name string, bodies bool) (view.View, error) {
	m, err := s.Manifest(ctx, name)
	return view.Manifest(m, bodies), err
}

func (t manifests) next() *cobra.Command {
	return &cobra.Command{
		Use: "next MANIFEST [NUMBER]", Short: "Show the next due times of a manifest; nothing is written",
		Long: `Show the next due times of a manifest, 10 unless a number is given, in its own time zone: as if it were
live, and no run were late. A manifest without a clock has no due times. The command writes nothing.`,
		Example: `  edda manifest next night/settle 30`,
		Args:    arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			n := 10
			if len(args) == 2 {
				if n, err = strconv.Atoi(args[1]); err != nil || n < 1 || n > scheduler.MaxOccurrences {
					return usage(c, fmt.Errorf("%s is not a number of due times: want 1 to %d", view.Escape(args[1]),
						scheduler.MaxOccurrences))
				}
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				times, err := s.Next(ctx, args[0], n)
				return view.DueTimes(args[0], times), err
			})
		},
	}
}

func (t manifests) trigger() *cobra.Command {
	body, o := "", scheduler.TriggerOptions{}
	c := &cobra.Command{
		Use: "trigger MANIFEST", Short: "Queue a run of a manifest now, whatever its schedule",
		Long: `Queue a run of a manifest, whatever its schedule, and also if it is paused. Each call queues a run of its
own. The run sends the manifest's message, or a message of the same kind with the JSON of --body. The command prints the
id of the run. Exit code 3: there is no such manifest, or no program declares it any more.`,
		Example: `  edda manifest trigger night/settle
  edda manifest trigger night/settle --body '{"day": "2026-11-20"}' --delay 10m`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("body") && !json.Valid([]byte(body)) {
				return usage(c, errors.New("--body is not JSON"))
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				input := saga.Message(nil)
				if c.Flags().Changed("body") {
					m, err := s.Manifest(ctx, args[0])
					if err != nil {
						return view.View{}, err
					}
					input = saga.Raw{Name: m.Kind, Body: []byte(body)}
				}
				run, err := s.Trigger(ctx, args[0], input, o)
				return lineOf(view.Object{"run", run}, "Run %s is queued.", run), err
			})
		},
	}
	c.Flags().StringVar(&body, "body", "", "JSON of the message, in place of the manifest's")
	c.Flags().DurationVar(&o.Delay, "delay", 0, "send it this much later")
	c.Flags().IntVar(&o.Priority, "priority", 0, "1 to 31; 0 is the manifest's priority")
	return c
}

func (t manifests) pause() *cobra.Command {
	reason := ""
	return because("reason", &reason, &cobra.Command{
		Use: "pause MANIFEST --reason TEXT", Short: "Stop a manifest from firing until it is resumed",
		Long: `Stop a manifest from firing until "edda manifest resume". A deploy does not end the pause. Runs that are
queued or active continue: "edda run cancel" ends them. When the manifest is resumed, its misfire policy decides about
the due times that passed during the pause.`,
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
		Long: `End the pause of a manifest, and show why it still does not fire, if so: its declaration, its group or a
dead run may also stop it, and the command changes none of these.`,
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
		Long: `Make a manifest an orphan: it does not fire any more, and its unsent runs are cancelled. It keeps its
runs and its settings until a server deletes all of them after 30 days. A program that starts later and declares the
manifest brings it back; a running program does not.`,
		Example: `  edda manifest remove night/settle`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.Remove(ctx, args[0]) })
		},
	}
}

// change makes a change and shows the manifest afterwards.
func (t manifests) change(c *cobra.Command, name string,
	do func(ctx context.Context, s *scheduler.Store) error) error {
	return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
		if err := do(ctx, s); err != nil {
			return view.View{}, err
		}
		return shownManifest(ctx, s, name, false)
	})
}

func (t manifests) backfill() *cobra.Command {
	from, until, p := "", "", scheduler.Period{}
	c := &cobra.Command{
		Use: "backfill MANIFEST --from TIME --until TIME", Short: "Queue the missing runs for due times of the past",
		Long: `Queue a run for each due time of a past period that has no run. A repeated backfill queues no due time
twice, as long as its record is kept. The runs do not wait for each other: a group with a cap limits how many are
active. When there are more due times than --max, the command prints where to continue.`,
		Example: `  edda manifest backfill night/settle --from 2026-11-01T00:00:00Z --until 2026-11-20T00:00:00Z
  edda manifest backfill poll/rates --from 6h --until 1h --max 5000`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			for flag, text := range map[string]string{"--from": from, "--until": until} {
				if _, err := view.ReadTime(text, time.Time{}); err != nil || text == "" {
					return usage(c, fmt.Errorf("%s %s: want a time like 2026-11-21T10:00:00Z, or how long ago, like "+
						"90m", flag, view.Escape(text)))
				}
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				if p.From, p.Until, err = t.period(ctx, from, until); err != nil {
					return view.View{}, err
				}
				done, err := s.Backfill(ctx, args[0], p)
				if err != nil {
					return view.View{}, err
				}
				v := view.Backfilled(done)
				if !done.Next.IsZero() {
					from := done.Next.UTC().Format(time.RFC3339Nano)
					v.Parts = append(v.Parts, linef("There are more: --from %s", from))
				}
				return v, nil
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "begin of the period: 2026-11-21T10:00:00Z, or 2h for two hours ago "+
		"(required)")
	c.Flags().StringVar(&until, "until", "", "end of the period, not included (required)")
	c.Flags().IntVar(&p.Max, "max", 1000, "due times to read, at most 10000")
	return c
}

// period reads two times; "" is no limit. It measures "two hours ago" by the database's clock.
func (t *tool) period(ctx context.Context, from, until string) (first, last time.Time, err error) {
	now, err := t.now(ctx)
	if err != nil {
		return first, last, err
	}
	if first, err = view.ReadTime(from, now); err == nil {
		last, err = view.ReadTime(until, now)
	}
	return first, last, err
}

const mostFile = 256 << 20

var errDiffers = errors.New("the declaration differs from the stored one")

func (t manifests) diff() *cobra.Command {
	return &cobra.Command{
		Use: "diff FILE", Short: "Show the changes that a declaration would make; nothing is written",
		Long: `Compare a declaration, which a program wrote with scheduler.MarshalDeclaration, with the stored
manifests, and show the changes that the program would make when it starts. "-" reads the standard input. The command
writes nothing. Exit code 1: the program would change something.`,
		Example: `  edda manifest diff manifests.json
  shop-worker -print-manifests | edda manifest diff - --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := t.file(args[0])
			if err != nil {
				return err
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				changes, err := s.DiffDeclaration(ctx, text)
				if err != nil {
					return view.View{}, err
				}
				if !changes.None() {
					if err := t.print(view.Changes(changes)); err != nil {
						return view.View{}, err
					}
					return view.View{}, errDiffers
				}
				return view.Changes(changes), nil
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

func (t groups) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "group", Short: "Show, set, pause and cancel groups of manifests",
		Long: `A group of manifests shares a cap on the runs that are active at a time, a priority, and a switch.`,
		Example: `  edda group list
  edda group set settlement --max 2 --strict
  edda group pause settlement --reason "the bank is down until 14:00"`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.set(), t.pause(), t.resume(), t.cancel())
	return c
}

// groups has the commands for groups of manifests.
type groups struct{ *tool }

func (t groups) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every group: its cap, and its queued and active runs",
		Long:    `Show every group of manifests. Counts end at 10,000.`,
		Example: `  edda group list`,
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				list, err := s.Groups(ctx)
				return listed(view.ManifestGroups(list), t.inSchema("Schema %q has no group of manifests.")), err
			})
		},
	}
}

func (t groups) set() *cobra.Command {
	to := scheduler.Group{}
	c := &cobra.Command{
		Use: "set GROUP", Short: "Set the cap and the priority of a group, or make one",
		Long: `Set the cap and the priority of a group, or make one. A setting without a flag stays as it is. The
settings survive deploys until the program that declares the group changes its declaration. A lower cap stops no active
run.`,
		Example: `  edda group set settlement --max 2 --strict
  edda group set reports --max 0 --priority 9`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0], func(ctx context.Context, s *scheduler.Store) error {
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
	c.Flags().BoolVar(&to.Strict, "strict", false, "never exceed --max, not even briefly; with --strict=false each "+
		"server counts for itself")
	c.Flags().IntVar(&to.Priority, "priority", 0, "0 to 31: dispatched before groups with a lower one")
	return c
}

func (t groups) pause() *cobra.Command {
	reason := ""
	return because("reason", &reason, &cobra.Command{
		Use: "pause GROUP --reason TEXT", Short: "Stop a group from firing and sending until it is resumed",
		Long: `Stop the manifests of a group from firing, and its queued runs from being sent, until "edda group
resume". Active runs continue: "edda group cancel" ends them.`,
		Example: `  edda group pause settlement --reason "the bank is down until 14:00"`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.PauseGroup(ctx, args[0], reason) })
		},
	})
}

func (t groups) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume GROUP", Short: "End the pause of a group",
		Long:    `End the pause of a group. Manifests that an operator or their declaration paused stay paused.`,
		Example: `  edda group resume settlement`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.change(c, args[0],
				func(ctx context.Context, s *scheduler.Store) error { return s.ResumeGroup(ctx, args[0]) })
		},
	}
}

// change makes a change and shows the group afterwards.
func (t groups) change(c *cobra.Command, name string, do func(ctx context.Context, s *scheduler.Store) error) error {
	return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
		if err := do(ctx, s); err != nil {
			return view.View{}, err
		}
		g, err := s.GroupOf(ctx, name)
		return view.ManifestGroup(g), err
	})
}

func (t groups) cancel() *cobra.Command {
	note := ""
	return because("note", &note, &cobra.Command{
		Use: "cancel GROUP --note TEXT", Short: "Cancel the runs of a group that are queued or active",
		Long: `Cancel the runs of a group that wait, are queued or active. Dead runs stay, because their manifests would
fire again. Pause the group first, so that no new runs come.`,
		Example: `  edda group pause settlement --reason "wrong rates" && edda group cancel settlement --note ` +
			`"wrong rates"`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (view.View, error) {
				n, err := s.CancelGroup(ctx, args[0], note)
				return lineOf(view.Object{"cancelled", n, "group", args[0]}, "%s cancelled.",
					view.Many(n, "run is", "runs are")), err
			})
		},
	})
}
