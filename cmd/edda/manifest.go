package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t manifests) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "manifest", Short: "Show, trigger, pause and backfill the manifests of the scheduler",
		Long: `Show and change the manifests of the scheduler: which message is sent, and when. One firing of a
manifest is a run.`,
		Example: `  edda manifest list --state held
  edda manifest show night/settle
  edda manifest trigger night/settle --body '{"day": "2026-11-20"}'
  edda manifest pause night/settle --reason "the bank is down until 14:00"
  edda manifest next night/settle 7`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.show(), t.next(), t.trigger(), t.pause(),
		t.resume(),
		t.backfill(), t.remove(), t.diff())
	return c
}

// manifests has the commands for the manifests of the scheduler.
type manifests struct{ *tool }

func manifestOf(m scheduler.ManifestInfo) object {
	timeout := (*float64)(nil) // null is none
	if m.Attempts.Timeout > 0 {
		seconds := m.Attempts.Timeout.Seconds()
		timeout = &seconds
	}
	return object{"manifest", m.Name, "owner", m.Owner, "state", m.State, "schedule", m.Schedule, "due",
		jsonTime(m.Due),
		"group", m.Group.Name, "priority", m.Priority, "kind", m.Kind, "parent", m.Parent.Name, "version", m.Version,
		"definition", m.Definition, "overlap", m.Overlap, "retries", m.Attempts.Retries, "retry_delay_seconds",
		m.Attempts.RetryDelay.Seconds(), "retry_most_seconds", m.Attempts.RetryMost.Seconds(), "run_timeout_seconds",
		timeout, "stopped", m.Paused.Declared, "paused", jsonTime(m.Paused.Since), "reason", m.Paused.Reason,
		"group_paused", jsonTime(m.Group.Paused), "orphaned", jsonTime(m.Orphaned), "run", jsonID(m.Run.ID), "held",
		jsonID(m.Held.ID), "successes", m.History.Successes, "fired", jsonTime(m.History.Fired), "succeeded",
		jsonTime(m.History.Succeeded), "created", m.History.Created.UTC(), "changed", m.History.Changed.UTC(), "waits",
		m.Waits()}
}

func (t manifests) list() *cobra.Command {
	f, state := scheduler.ManifestFilter{}, ""
	c := &cobra.Command{
		Use: "list", Short: "Show manifests: when they are due, and whether they fire",
		Long: `Show manifests in the order of their names. STATE is "live"; "paused", by its declaration, an operator or
with its group; "held" by a run that is dead; or "orphan", which no program declares any more. DUE is the next
firing, and empty if no clock decides it.`,
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
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				list, err := s.Manifests(ctx, f)
				return manifestPage(list, f.Limit), err
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Prefix, "prefix", "", "only those whose names begin with this")
	flags.StringVar(&f.Owner, "owner", "", "only those that this program declares")
	flags.StringVar(&f.Group, "group", "", "only those of this group")
	flags.StringVar(&state, "state", "", "only those that are live, paused, held or orphan")
	flags.StringVar(&f.After, "after", "", "continue after the manifest of this name")
	flags.IntVar(&f.Limit, "limit", 100, "manifests, at most 1000")
	return c
}

func manifestPage(list []scheduler.ManifestInfo, limit int) result {
	next := ""
	if len(list) == limit {
		next = list[limit-1].Name
	}
	return listing{name: "manifests", none: "No such manifest.", next: &next}.of(
		"MANIFEST|STATE|DUE|SCHEDULE|GROUP|OWNER|SUCCESSES|LAST SUCCESS", rows(list,
			func(m scheduler.ManifestInfo) (object, []string) {
				return manifestOf(m), []string{m.Name, string(m.State), moment(m.Due), shortened(m.Schedule, 50),
					m.Group.Name, m.Owner, strconv.FormatInt(m.History.Successes, 10), moment(m.History.Succeeded)}
			}))
}

func (t manifests) show() *cobra.Command {
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
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				return shownManifest(ctx, s, args[0], bodies)
			})
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show its message")
	return c
}

func shownManifest(ctx context.Context, s *scheduler.Store, name string, bodies bool) (result, error) {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return result{}, err
	}
	value := append(manifestOf(m), "size", len(m.Body))
	if bodies {
		value = append(value, bodyOf(m.Body)...)
	}
	return result{value: value, page: func(p *page) {
		p.fields("manifest", m.Name, "owner", m.Owner, "state", string(m.State), "schedule", m.Schedule, "due",
			moment(m.Due), "group", m.Group.Name, "priority", strconv.Itoa(m.Priority), "kind", m.Kind, "retries",
			fmt.Sprintf("%d, after %v up to %v", m.Attempts.Retries, m.Attempts.RetryDelay, m.Attempts.RetryMost),
			"timeout", span(m.Attempts.Timeout), "version", strconv.FormatInt(m.Version, 10), "changed",
			moment(m.History.Changed), "successes", strconv.FormatInt(m.History.Successes, 10), "last fired",
			moment(m.History.Fired), "last success", moment(m.History.Succeeded), "open run", idText(m.Run.ID),
			"held by",
			idText(m.Held.ID))
		for _, reason := range m.Waits() {
			p.line("%s", reason)
		}
		if bodies {
			p.block(pretty(m.Body))
		}
	}}, nil
}

func (t manifests) next() *cobra.Command {
	return &cobra.Command{
		Use: "next MANIFEST [NUMBER]", Short: "Show the next due times of a manifest; nothing is written",
		Long: `Show the next due times of a manifest, 10 unless a number is given, in its own time zone: as if it were
live, and no run were late. A manifest without a clock has none. Nothing is written.`,
		Example: `  edda manifest next night/settle 30`,
		Args:    arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			n := 10
			if len(args) == 2 {
				if n, err = strconv.Atoi(args[1]); err != nil || n < 1 || n > scheduler.MaxOccurrences {
					return usage(c, fmt.Errorf("%s is not a number of due times: want 1 to %d", escape(args[1]),
						scheduler.MaxOccurrences))
				}
			}
			return t.schedule(c, func(ctx context.Context, s *scheduler.Store) (result, error) {
				times, err := s.Next(ctx, args[0], n)
				if err != nil {
					return result{}, err
				}
				return result{value: object{"manifest", args[0], "times", append([]time.Time{}, times...)},
					page: func(p *page) {
						if len(times) == 0 {
							p.line("%s has no due time: no clock decides it, or its last due time has passed.", args[0])
						}
						for _, at := range times {
							p.line("%s", at.Format("Mon 2006-01-02 15:04:05 -07:00 MST"))
						}
					}}, nil
			})
		},
	}
}
