package main

import (
	"context"
	"strconv"
	"time"

	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t *tool) leaseCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "lease", Short: "Show which replica does what only one may do, and have it give that up",
		Long: `A lease lets one process at a time do something: a loop of yours (singleton/NAME), the evaluation of
manifests (scheduler), a partition (partition/ENDPOINT/QUEUE). It is renewed while that goes on, given back at the end
of it, and expires when its holder died.`,
		Example: `  edda lease list
  edda lease resign singleton/rates`,
		RunE: group,
	}
	c.AddCommand(t.leaseList(), t.leaseResign())
	return c
}

type leaseJSON struct {
	Name      string     `json:"name"`
	Holder    string     `json:"holder"`
	Epoch     int64      `json:"epoch"`
	Held      bool       `json:"held"`
	Resigning bool       `json:"resigning"`
	Acquired  *time.Time `json:"acquired"`
	Renewed   *time.Time `json:"renewed"`
	Expires   *time.Time `json:"expires"`
	ExpiresIn float64    `json:"expires_in_seconds"` // 0 when nobody holds it
}

func (t *tool) leaseList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every lease: who has it, in which term, and when that would end",
		Long: `Show every lease that was ever held. HELD is "yes", "resigning" when its holder was asked to give it up,
and "no" when it was given back or has expired: HOLDER is then who had it, where it was not given back. EXPIRES is when
the term would end were it not renewed. EPOCH grows by one with each term: one that grows all the time is a lease that
nobody can keep. Nothing is locked.`,
		Example: `  edda lease list
  edda lease list --json | jq '.leases[] | select(.held | not)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, leases, err := t.openLeases(c.Context())
			if err != nil {
				return err
			}
			infos, err := leases.List(ctx)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(t.leasePage(infos))
		},
	}
}

func (t *tool) leasePage(infos []scheduler.LeaseInfo) result {
	all := []leaseJSON{}
	rows := [][]string{{"NAME", "HOLDER", "EPOCH", "HELD", "SINCE", "EXPIRES"}}
	for _, i := range infos {
		held, left := "no", time.Duration(0)
		if i.Held {
			held, left = "yes", i.Expires.Sub(i.Now)
		}
		if i.Held && i.Resigning {
			held = "resigning"
		}
		all = append(all, leaseJSON{
			Name: i.Name, Holder: i.Holder, Epoch: i.Epoch, Held: i.Held, Resigning: i.Resigning,
			Acquired: jsonTime(i.Acquired), Renewed: jsonTime(i.Renewed), Expires: jsonTime(i.Expires),
			ExpiresIn: left.Seconds(),
		})
		rows = append(rows, []string{i.Name, i.Holder, strconv.FormatInt(i.Epoch, 10), held, moment(i.Acquired),
			span(left)})
	}
	return result{value: map[string]any{"leases": all}, page: func(p *page) {
		if len(infos) == 0 {
			p.line("No lease of schema %q was ever held.", t.schemaName())
			return
		}
		p.table(rows)
	}}
}

func (t *tool) leaseResign() *cobra.Command {
	return &cobra.Command{
		Use: "resign NAME", Short: "Ask the holder of a lease to give it up to another replica",
		Long: `Ask the holder of a lease to end its term. It learns of that at once when it listens, else with its next
renewal; it stops what it does, gives the lease back, and leaves it to the others for a while. Where there is no other
replica it then takes it again. The command does not wait for that. One that is dead is not asked: its term expires.
Exit code 3: nobody holds a lease of that name.`,
		Example: `  edda lease resign singleton/rates`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, leases, err := t.openLeases(c.Context())
			if err != nil {
				return err
			}
			if err := leases.Resign(ctx, args[0]); err != nil {
				return causeOf(ctx, err)
			}
			return t.print(result{value: map[string]any{"asked": args[0]}, page: func(p *page) {
				p.line("The holder of %s was asked to give it up.", args[0])
			}})
		},
	}
}

func (t *tool) openLeases(ctx context.Context) (context.Context, *scheduler.Leases, error) {
	ctx, _, err := t.open(ctx)
	if err != nil {
		return ctx, nil, err
	}
	leases, err := scheduler.NewLeases(t.pool, t.schemaName())
	return ctx, leases, err
}
