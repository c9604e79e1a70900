package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t sagas) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "saga", Short: "Show living saga instances",
		Example: `  edda saga list order --prefix 2026-
  edda saga show order 2026-0007`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.show())
	return c
}

// sagas has the commands that look at saga instances.
type sagas struct{ *tool }

func instanceOf(l persistence.Listed) object {
	i, timeouts, originator := l.Instance, []object{}, any(nil)
	for _, p := range i.Pending {
		timeouts = append(timeouts, object{"name", p.Name, "kind", p.Kind, "due", p.Due.UTC(), "id", p.ID})
	}
	if i.Originator != (saga.Originator{}) {
		originator = object{"endpoint", i.Originator.Endpoint, "message", i.Originator.MessageID}
	}
	o := object{"saga", i.Saga, "key", i.Key, "id", i.ID, "version", i.Version, "state_version", i.StateVersion,
		"started", l.Started, "changed", l.Changed, "remembered_until", jsonTime(i.RememberedUntil()), "timeouts",
		timeouts, "originator", originator}
	if l.Faulty != nil {
		o = append(o, "row_error", l.Faulty.Error())
	}
	if len(i.State) > 0 {
		o = append(o, "state", json.RawMessage(i.State))
	}
	return o
}

func (t sagas) list() *cobra.Command {
	var o persistence.ListOptions
	after := ""
	c := &cobra.Command{
		Use: "list [SAGA]", Short: "Show living instances in the order of saga and key",
		Long: `Show living instances in the order of saga and key, of one saga or of all, a page at a time. TIMEOUTS is
how many an instance waits for, NEXT the earliest of them. A completed instance is gone, and not shown, unless its
saga remembers it: then REMEMBERED UNTIL says when it is forgotten.`,
		Example: `  edda saga list
  edda saga list order --prefix 2026- --limit 200
  edda saga list order --after order/2026-0007`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Saga = args[0]
			}
			if o.KeyPrefix != "" && o.Saga == "" {
				return usage(c, fmt.Errorf("--prefix needs the name of the saga: edda saga list SAGA --prefix %s",
					escape(o.KeyPrefix)))
			}
			if after != "" {
				ok := false
				if o.AfterSaga, o.AfterKey, ok = strings.Cut(after, "/"); !ok {
					return usage(c, fmt.Errorf("--after %s: want SAGA/KEY, the end of the page before", escape(after)))
				}
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (result, error) {
				all, err := op.Sagas().Instances(ctx, o)
				if err != nil {
					return result{}, err
				}
				next := ""
				if n := len(all); n > 0 && n >= min(cmp.Or(max(o.Limit, 0), persistence.DefaultLimit),
					persistence.MaxLimit) {
					next = all[n-1].Instance.Saga + "/" + all[n-1].Instance.Key
				}
				return instances(all, next), nil
			})
		},
	}
	c.Flags().StringVar(&o.KeyPrefix, "prefix", "", "only keys that begin with this, with a SAGA")
	c.Flags().IntVar(&o.Limit, "limit", persistence.DefaultLimit, "instances, at most 200")
	c.Flags().StringVar(&after, "after", "", "continue after this instance, given as SAGA/KEY")
	return c
}

func instances(all []persistence.Listed, next string) result {
	return listing{name: "instances", none: "No such instance lives.", next: &next}.of(
		"SAGA|KEY|VERSION|STARTED|CHANGED|TIMEOUTS|NEXT|REMEMBERED UNTIL",
		rows(all, func(l persistence.Listed) (object, []string) {
			i := l.Instance
			return instanceOf(l), []string{i.Saga, i.Key, strconv.FormatInt(i.Version, 10), moment(l.Started),
				moment(l.Changed), strconv.Itoa(len(i.Pending)), moment(firstDue(i.Pending)),
				moment(i.RememberedUntil())}
		}))
}

// quoted quotes a text for the shell if it needs that.
func quoted(text string) string {
	if strings.ContainsAny(text, " '\"$&|;<>()*?[]#~`\\!") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

func firstDue(pending []saga.Pending) (first time.Time) {
	for _, p := range pending {
		if first.IsZero() || p.Due.Before(first) {
			first = p.Due
		}
	}
	return first
}

func (t sagas) show() *cobra.Command {
	return &cobra.Command{
		Use: "show SAGA KEY", Short: "Show one instance with its state, and what happened to it last",
		Long: `Show one instance with its state as it is stored, its pending timeouts, who started it, and its last 10
versions. "edda history show" has those before them. Exit code 3: there is no instance of this key; it may have
completed, which "edda history show" knows, or never started.`,
		Example: `  edda saga show order 2026-0007
  edda saga show order 2026-0007 --json | jq '.state'`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (result, error) {
				l, ok, err := op.Sagas().Show(ctx, args[0], args[1])
				if err != nil {
					return result{}, err
				}
				if !ok {
					return result{}, fmt.Errorf("show saga %s/%s: no instance of this key is alive: %w", args[0],
						args[1],
						errNotFound)
				}
				versions, err := lastVersions(ctx, op, l.Instance)
				return result{value: append(instanceOf(l), "timeline", timelineOf(versions)), page: func(p *page) {
					showInstance(p, l)
					p.line("history:")
					showTimeline(p, versions)
				}}, err
			})
		},
	}
}

// lastVersions is the end of an instance's timeline; nothing if it has ended meanwhile.
func lastVersions(ctx context.Context, op *operate.Operator, i saga.Instance) ([]history.Version, error) {
	life, ok, err := op.History().Life(ctx, i.ID)
	if err != nil || !ok {
		return nil, err
	}
	versions, _, err := op.History().Timeline(ctx, life, saga.ID{}, 10)
	return versions, err
}

func showInstance(p *page, l persistence.Listed) {
	i := l.Instance
	p.fields("saga", i.Saga, "key", i.Key, "id", i.ID.String(), "version", strconv.FormatInt(i.Version, 10),
		"state version", strconv.Itoa(i.StateVersion), "started", moment(l.Started), "changed",
		moment(l.Changed), "started by endpoint", cmp.Or(i.Originator.Endpoint, "(from outside)"), "started by message",
		idText(i.Originator.MessageID))
	if l.Faulty != nil {
		p.line("The row cannot be read wholly: %v", l.Faulty)
	}
	if until := i.RememberedUntil(); !until.IsZero() {
		p.line("It has completed, and is remembered until %s.", moment(until))
	}
	if len(i.Pending) > 0 {
		p.line("timeouts:")
	}
	for _, timeout := range i.Pending {
		p.line("    %s  %s", moment(timeout.Due), strings.TrimSpace(timeout.Kind+" "+timeout.Name))
	}
	p.line("state:")
	p.block(pretty(i.State))
}
