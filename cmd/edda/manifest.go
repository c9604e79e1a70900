package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t *tool) manifestCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "manifest", Short: "Show, trigger, pause and backfill the manifests of the scheduler",
		Long: `Show and change the manifests of the scheduler: what says when which message is sent. One firing of a
manifest is a run.`,
		Example: `  edda manifest list --state held
  edda manifest show night/settle
  edda manifest trigger night/settle --body '{"day": "2026-11-20"}'
  edda manifest pause night/settle --reason "the bank is down until 14:00"
  edda manifest next night/settle 7`,
		RunE: group,
	}
	c.AddCommand(t.manifestList(), t.manifestShow(), t.manifestNext(), t.manifestTrigger(), t.manifestPause(),
		t.manifestResume(),
		t.manifestBackfill(), t.manifestRemove(), t.manifestDiff())
	return c
}

// openStore connects and makes a store of manifests on a schema that is up to date.
func (t *tool) openStore(ctx context.Context) (context.Context, *scheduler.Store, error) {
	ctx, _, err := t.open(ctx)
	if err != nil {
		return ctx, nil, err
	}
	s, err := scheduler.NewStore(t.pool, scheduler.StoreOptions{Schema: t.schemaName()})
	return ctx, s, err
}

type manifestJSON struct {
	Manifest    string          `json:"manifest"`
	Owner       string          `json:"owner"`
	State       string          `json:"state"`
	Schedule    string          `json:"schedule"`
	Due         *time.Time      `json:"due"`
	Group       string          `json:"group"`
	Priority    int             `json:"priority"`
	Kind        string          `json:"kind"`
	Parent      string          `json:"parent"`
	Version     int64           `json:"version"`
	Definition  json.RawMessage `json:"definition"`
	Overlap     bool            `json:"overlap"`
	Retries     int             `json:"retries"`
	RetryDelay  float64         `json:"retry_delay_seconds"`
	RetryMost   float64         `json:"retry_most_seconds"`
	RunTimeout  *float64        `json:"run_timeout_seconds"` // null is none
	Stopped     bool            `json:"stopped"`
	Paused      *time.Time      `json:"paused"`
	Reason      string          `json:"reason"`
	GroupPaused *time.Time      `json:"group_paused"`
	Orphaned    *time.Time      `json:"orphaned"`
	Run         *saga.ID        `json:"run"`
	Held        *saga.ID        `json:"held"`
	Successes   int64           `json:"successes"`
	Fired       *time.Time      `json:"fired"`
	Succeeded   *time.Time      `json:"succeeded"`
	Created     time.Time       `json:"created"`
	Changed     time.Time       `json:"changed"`
	Waits       []string        `json:"waits"`
	Size        *int            `json:"size,omitempty"` // show only
	body
}

func manifestOf(m scheduler.ManifestInfo) manifestJSON {
	j := manifestJSON{
		Manifest: m.Name, Owner: m.Owner, State: string(m.State), Schedule: m.Schedule, Due: jsonTime(m.Due),
		Group: m.Group.Name, Priority: m.Priority,
		Kind: m.Kind, Parent: m.Parent.Name, Version: m.Version, Definition: m.Definition, Overlap: m.Overlap,
		Retries:    m.Attempts.Retries,
		RetryDelay: m.Attempts.RetryDelay.Seconds(), RetryMost: m.Attempts.RetryMost.Seconds(), Stopped: m.Paused.Declared,
		Paused: jsonTime(m.Paused.Since), Reason: m.Paused.Reason,
		GroupPaused: jsonTime(
			m.Group.Paused,
		), Orphaned: jsonTime(m.Orphaned), Run: jsonID(m.Run.ID), Held: jsonID(m.Held.ID),
		Successes: m.History.Successes,
		Fired: jsonTime(
			m.History.Fired,
		), Succeeded: jsonTime(m.History.Succeeded), Created: m.History.Created.UTC(), Changed: m.History.Changed.UTC(),
		Waits: m.Waits(),
	}
	if m.Attempts.Timeout > 0 {
		seconds := m.Attempts.Timeout.Seconds()
		j.RunTimeout = &seconds
	}
	return j
}

// jsonID is an id in JSON, null when there is none.
func jsonID(id saga.ID) *saga.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

func (t *tool) manifestList() *cobra.Command {
	f, state := scheduler.ManifestFilter{}, ""
	c := &cobra.Command{
		Use: "list", Short: "Show manifests: when they are due, and whether they fire",
		Long: `Show manifests in the order of their names. STATE is "live"; "paused", by its declaration, an operator or
with its group; "held" by a run that is dead; or "orphan", which nobody declares any more. DUE is the next firing, with
none where no clock decides it.`,
		Example: `  edda manifest list
  edda manifest list --state held
  edda manifest list --owner shop --prefix night/ --json | jq '.manifests[].due'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.State = scheduler.ManifestState(state); f.Limit < 1 || f.Limit > scheduler.MostListed {
				return usage(c, fmt.Errorf("--limit %d: want 1 to %d", f.Limit, scheduler.MostListed))
			}
			if !strings.Contains(" live paused held orphan ", " "+state+" ") && state != "" {
				return usage(c, fmt.Errorf("--state %s: want live, paused, held or orphan", escape(state)))
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			list, err := s.Manifests(ctx, f)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(manifestPage(list, f.Limit))
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Prefix, "prefix", "", "only those whose names begin so")
	flags.StringVar(&f.Owner, "owner", "", "only those that this program declares")
	flags.StringVar(&f.Group, "group", "", "only those of this group")
	flags.StringVar(&state, "state", "", "only those that are live, paused, held or orphan")
	flags.StringVar(&f.After, "after", "", "go on behind the manifest of this name")
	flags.IntVar(&f.Limit, "limit", 100, "manifests, at most 1000")
	return c
}

func manifestPage(list []scheduler.ManifestInfo, limit int) result {
	all, next := []manifestJSON{}, ""
	rows := [][]string{{"MANIFEST", "STATE", "DUE", "SCHEDULE", "GROUP", "OWNER", "SUCCESSES", "LAST SUCCESS"}}
	for _, m := range list {
		all = append(all, manifestOf(m))
		rows = append(rows, []string{m.Name, string(m.State), moment(m.Due), shortened(m.Schedule, 50), m.Group.Name,
			m.Owner,
			strconv.FormatInt(m.History.Successes, 10), moment(m.History.Succeeded)})
	}
	if len(list) == limit {
		next = list[limit-1].Name
	}
	return result{value: map[string]any{"manifests": all, "next": next}, page: func(p *page) {
		if len(list) == 0 {
			p.line("No such manifest.")
			return
		}
		p.table(rows)
		if next != "" {
			p.line("There may be more: --after %s", next)
		}
	}}
}

func (t *tool) manifestShow() *cobra.Command {
	bodies := false
	c := &cobra.Command{
		Use: "show MANIFEST", Short: "Show one manifest, and why it does not fire at this moment",
		Long: `Show one manifest, and say what it waits for: what paused it and why, its group, the run that is open or
that holds it, or the moment until which nothing is due. Its message is shown with --body only. Exit code 3: there is
none.`,
		Example: `  edda manifest show night/settle
  edda manifest show night/settle --json | jq -r '.waits[]'`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			return t.showManifest(ctx, s, args[0], bodies)
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show its message")
	return c
}

func (t *tool) showManifest(ctx context.Context, s *scheduler.Store, name string, bodies bool) error {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return causeOf(ctx, err)
	}
	j, size := manifestOf(m), len(m.Body)
	if j.Size = &size; bodies {
		j.body = bodyOf(m.Body)
	}
	return t.print(result{value: j, page: func(p *page) {
		p.fields(
			"manifest",
			m.Name,
			"owner",
			m.Owner,
			"state",
			string(m.State),
			"schedule",
			m.Schedule,
			"due",
			moment(m.Due),
			"group",
			m.Group.Name,
			"priority",
			strconv.Itoa(m.Priority),
			"kind",
			m.Kind,
			"retries",
			fmt.Sprintf("%d, after %v up to %v", m.Attempts.Retries, m.Attempts.RetryDelay, m.Attempts.RetryMost),
			"timeout",
			span(m.Attempts.Timeout),
			"version",
			strconv.FormatInt(m.Version, 10),
			"changed",
			moment(m.History.Changed),
			"successes",
			strconv.FormatInt(m.History.Successes, 10),
			"last fired",
			moment(m.History.Fired),
			"last success",
			moment(m.History.Succeeded),
			"open run",
			idText(m.Run.ID),
			"held by",
			idText(m.Held.ID),
		)
		for _, reason := range m.Waits() {
			p.line("%s", reason)
		}
		if bodies {
			p.block(pretty(m.Body))
		}
	}})
}

func idText(id saga.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func (t *tool) manifestNext() *cobra.Command {
	return &cobra.Command{
		Use: "next MANIFEST [NUMBER]", Short: "Show the next due times of a manifest; nothing is written",
		Long: `Show the next due times of a manifest, 10 unless a number is given, in its own time zone: as if it were
live, and no run were late. A manifest that no clock decides has none. Nothing is written.`,
		Example: `  edda manifest next night/settle 30`,
		Args:    arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			n := 10
			if len(args) == 2 {
				if n, err = strconv.Atoi(args[1]); err != nil || n < 1 || n > scheduler.MaxOccurrences {
					return usage(c, fmt.Errorf("%s is no number of due times: want 1 to %d", escape(args[1]),
						scheduler.MaxOccurrences))
				}
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			times, err := s.Next(ctx, args[0], n)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(result{value: map[string]any{"manifest": args[0], "times": append([]time.Time{}, times...)},
				page: func(p *page) {
					if len(times) == 0 {
						p.line("No clock decides when %s is due, or it is due never again.", args[0])
					}
					for _, at := range times {
						p.line("%s", at.Format("Mon 2006-01-02 15:04:05 -07:00 MST"))
					}
				}})
		},
	}
}
