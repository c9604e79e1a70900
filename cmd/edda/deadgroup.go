package main

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/spf13/cobra"
)

type groupJSON struct {
	Group    string    `json:"group"`
	Endpoint string    `json:"endpoint"`
	Kind     string    `json:"kind"`
	Count    int64     `json:"count"`
	Capped   bool      `json:"capped"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Example  int64     `json:"example"`
	Reason   string    `json:"reason"`
	Error    string    `json:"error"`
}

func (t *tool) deadGroup() *cobra.Command {
	var f deadletter.GroupFilter
	c := &cobra.Command{
		Use: "group", Short: "Show the groups of dead letters: those whose errors are alike",
		Long: `Show the groups of dead letters, the largest first. The letters of a group died in one endpoint, are of
one kind, and have errors that differ in numbers, ids and quoted texts only. EXAMPLE is the number of the newest.
Letters are counted up to 100,000; a larger group is marked with "+". At most 1,000 groups are looked at; --after goes
on behind them.`,
		Example: `  edda dead group
  edda dead group --endpoint orders
  edda dead retry --group 373371abe806 --rate 10 --yes`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			groups, next, err := op.DeadLetters().Groups(ctx, t.pool, f)
			if err != nil {
				return causeOf(ctx, err)
			}
			slices.SortStableFunc(groups, func(a, b deadletter.Group) int {
				return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last))
			})
			return t.print(groupList(groups, next))
		},
	}
	c.Flags().StringVar(&f.Endpoint, "endpoint", "", "only those of this endpoint")
	c.Flags().StringVar(&f.Kind, "kind", "", "only those of this kind")
	c.Flags().StringVar(&f.After, "after", "", "go on behind the group of this name")
	return c
}

func groupList(groups []deadletter.Group, next string) result {
	all := []groupJSON{}
	rows := [][]string{{"GROUP", "COUNT", "ENDPOINT", "KIND", "FIRST", "LAST", "EXAMPLE", "REASON", "ERROR"}}
	for _, g := range groups {
		all = append(all, groupJSON{g.Name, g.Endpoint, g.Kind, g.Count, g.Capped, g.First, g.Last, g.Example, g.Reason,
			g.Error})
		count := strconv.FormatInt(g.Count, 10)
		if g.Capped {
			count += "+"
		}
		rows = append(rows, []string{g.Name, count, g.Endpoint, g.Kind, moment(g.First), moment(g.Last),
			strconv.FormatInt(g.Example, 10),
			shortened(g.Reason, 24), shortened(g.Error, 60)})
	}
	return result{value: map[string]any{"groups": all, "next": next}, page: func(p *page) {
		if len(groups) == 0 {
			p.line("No such dead letter.")
			return
		}
		p.table(rows)
		if next != "" {
			p.line("There may be more: --after %s", next)
		}
	}}
}
