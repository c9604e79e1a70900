package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t *tool) sagaCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "saga", Short: "Show living saga instances",
		Example: `  edda saga list order --prefix 2026-
  edda saga show order 2026-0007`,
		RunE: group,
	}
	c.AddCommand(t.sagaList(), t.sagaShow())
	return c
}

type instanceJSON struct {
	Saga         string          `json:"saga"`
	Key          string          `json:"key"`
	ID           saga.ID         `json:"id"`
	Version      int64           `json:"version"`
	StateVersion int             `json:"state_version"`
	Started      time.Time       `json:"started"`
	Timeouts     []timeoutJSON   `json:"timeouts"`
	Originator   *originatorJSON `json:"originator"`
	RowError     string          `json:"row_error,omitempty"`
	State        json.RawMessage `json:"state,omitempty"`
}

type timeoutJSON struct {
	Name string    `json:"name"`
	Kind string    `json:"kind"`
	Due  time.Time `json:"due"`
	ID   saga.ID   `json:"id"`
}

type originatorJSON struct {
	Endpoint string  `json:"endpoint"`
	Message  saga.ID `json:"message"`
}

func instanceOf(l persistence.Listed) instanceJSON {
	i := l.Instance
	j := instanceJSON{
		Saga: i.Saga, Key: i.Key, ID: i.ID, Version: i.Version, StateVersion: i.StateVersion, Started: l.Started,
		Timeouts: []timeoutJSON{}, State: i.State,
	}
	for _, p := range i.Pending {
		j.Timeouts = append(j.Timeouts, timeoutJSON{p.Name, p.Kind, p.Due.UTC(), p.ID})
	}
	if i.Originator != (saga.Originator{}) {
		j.Originator = &originatorJSON{i.Originator.Endpoint, i.Originator.MessageID}
	}
	if l.Faulty != nil {
		j.RowError = l.Faulty.Error()
	}
	return j
}

func (t *tool) sagaList() *cobra.Command {
	var o persistence.ListOptions
	after := ""
	c := &cobra.Command{
		Use: "list [SAGA]", Short: "Show living instances in the order of saga and key",
		Long: `Show living instances in the order of saga and key, of one saga or of all, a page at a time. TIMEOUTS is
how many an instance waits for, NEXT the earliest of them. Completed instances are gone, and not shown.`,
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
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			all, err := op.Sagas().Instances(ctx, o)
			if err != nil {
				return causeOf(ctx, err)
			}
			next := ""
			if n := len(all); n > 0 && n >= min(cmp.Or(max(o.Limit, 0), persistence.DefaultLimit),
				persistence.MaxLimit) {
				next = all[n-1].Instance.Saga + "/" + all[n-1].Instance.Key
			}
			return t.print(instances(all, next))
		},
	}
	c.Flags().StringVar(&o.KeyPrefix, "prefix", "", "only keys that begin with this, with a SAGA")
	c.Flags().IntVar(&o.Limit, "limit", persistence.DefaultLimit, "instances, at most 200")
	c.Flags().StringVar(&after, "after", "", "go on behind this instance, given as SAGA/KEY")
	return c
}

func instances(all []persistence.Listed, next string) result {
	list := []instanceJSON{}
	rows := [][]string{{"SAGA", "KEY", "VERSION", "STARTED", "TIMEOUTS", "NEXT"}}
	for _, l := range all {
		list = append(list, instanceOf(l))
		rows = append(rows, []string{l.Instance.Saga, l.Instance.Key, strconv.FormatInt(l.Instance.Version, 10),
			moment(l.Started),
			strconv.Itoa(len(l.Instance.Pending)), moment(firstDue(l.Instance.Pending))})
	}
	return result{value: map[string]any{"instances": list, "next": next}, page: func(p *page) {
		if len(all) == 0 {
			p.line("No such instance lives.")
			return
		}
		p.table(rows)
		if next != "" {
			p.line("There may be more: --after %s", quoted(next))
		}
	}}
}

// quoted makes a word of the shell of a key that is none.
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

func (t *tool) sagaShow() *cobra.Command {
	return &cobra.Command{
		Use: "show SAGA KEY", Short: "Show one instance with its state",
		Long: `Show one living instance with its state as it is stored, its pending timeouts and who started it. Exit
code 3: no instance of this key is alive; it may have completed, or never started.`,
		Example: `  edda saga show order 2026-0007
  edda saga show order 2026-0007 --json | jq '.state'`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			l, ok, err := op.Sagas().Show(ctx, args[0], args[1])
			if err != nil {
				return causeOf(ctx, err)
			}
			if !ok {
				return fmt.Errorf("show saga %s/%s: no instance of this key is alive: %w", args[0], args[1],
					errNotFound)
			}
			return t.print(result{value: instanceOf(l), page: func(p *page) { showInstance(p, l) }})
		},
	}
}

func showInstance(p *page, l persistence.Listed) {
	i := l.Instance
	p.fields("saga", i.Saga, "key", i.Key, "id", i.ID.String(), "version", strconv.FormatInt(i.Version, 10),
		"state version", strconv.Itoa(i.StateVersion), "started", moment(l.Started),
		"started by endpoint", cmp.Or(i.Originator.Endpoint, "(from outside)"), "started by message",
		idOrNone(i.Originator.MessageID))
	if l.Faulty != nil {
		p.line("The row cannot be read wholly: %v", l.Faulty)
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

func idOrNone(id saga.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
