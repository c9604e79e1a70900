package page

import (
	"context"
	"strings"
	"time"

	"github.com/edda-go/edda/eddaui/internal/act"
	"github.com/edda-go/edda/internal/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/scheduler"
)

// limitsPage is the page of limits and leases.
type limitsPage struct {
	Head
	Limits []limitRow
	Leases []leaseRow

	shown view.Object
}

// JSON is what the commands print.
func (p *limitsPage) JSON() any { return p.shown }

// limitRow is a limit, with a cell for each slot if they are few.
type limitRow struct {
	operate.LimitInfo
	Cells    []string // "held", "draining" or "free"
	Endpoint string   // whose limit it is, "" for a limit of a program's own
	Forms    []act.Form
}

// leaseRow is a lease.
type leaseRow struct {
	scheduler.LeaseInfo
	State string
	Left  time.Duration // until the term ends, unless it is renewed
	Forms []act.Form
}

// mostCells is how many slots are drawn.
const mostCells = 64

// Limits reads all limits and leases.
func (s *Source) Limits(ctx context.Context, _ Ask) (Page, error) {
	limits, err := s.Op.Limits().List(ctx)
	if err != nil {
		return nil, err
	}
	p := &limitsPage{
		Head:  head("limits", "Limits and leases", "edda limit list").audited("limit", ""),
		shown: view.Limits(limits).View().JSON,
	}
	for _, l := range limits {
		p.Limits = append(p.Limits, limited(l))
	}
	if s.Leases == nil {
		return p, nil
	}
	leases, err := s.Leases.List(ctx)
	if err != nil {
		return nil, err
	}
	p.shown = append(p.shown, view.Leases(leases).View().JSON...)
	for _, l := range leases {
		p.Leases = append(p.Leases, leased(l))
	}
	return p, nil
}

func limited(l operate.LimitInfo) limitRow {
	out := limitRow{LimitInfo: l, Forms: act.Limited(l)}
	if !strings.HasPrefix(l.Name, "named/") {
		out.Endpoint = l.Name
	}
	if max(l.Limit, l.Held) > mostCells {
		return out
	}
	for n := range max(l.Limit, l.Held) {
		switch {
		case n < l.Held-l.Draining:
			out.Cells = append(out.Cells, "held")
		case n < l.Held:
			out.Cells = append(out.Cells, "draining")
		default:
			out.Cells = append(out.Cells, "free")
		}
	}
	return out
}

func leased(l scheduler.LeaseInfo) leaseRow {
	out := leaseRow{LeaseInfo: l, State: "free", Forms: act.Leased(l)}
	switch {
	case l.Held && l.Resigning:
		out.State, out.Left = "resigning", l.Expires.Sub(l.Now)
	case l.Held:
		out.State, out.Left = "held by a process", l.Expires.Sub(l.Now)
	case l.Holder != "":
		out.State = "expired"
	}
	return out
}
