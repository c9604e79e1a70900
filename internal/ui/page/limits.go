package page

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
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

// JSON returns the output of the commands.
func (p *limitsPage) JSON() any { return p.shown }

// limitRow is a limit, with a cell for each slot if they are few.
type limitRow struct {
	operate.LimitInfo
	Cells    []cell
	Lines    []cell // the cells, if each fits on a line of its own
	Endpoint string // the endpoint of the limit, "" for a program's own limit
	Forms    []act.Form
}

// cell is a slot of a limit.
type cell struct {
	State  string // "held", "draining" or "free"
	Holder *operate.Holder
}

// Title describes a cell.
func (c cell) Title(now time.Time) string {
	h := c.Holder
	if h == nil {
		return c.State
	}
	text := fmt.Sprintf("slot %d, %s", h.Slot, c.State)
	if h.Process != "" {
		text += " by " + h.Process
	}
	if !h.Since.IsZero() {
		text += " since " + words.Clock(h.Since, now)
	}
	return text + ": " + h.Does
}

// leaseRow is a lease.
type leaseRow struct {
	scheduler.LeaseInfo
	State string
	Left  time.Duration // until the term ends, unless it is renewed
	Forms []act.Form
}

const (
	mostCells = 64 // slots that are drawn
	mostLines = 8  // slots that have a line each
)

// Limits reads all limits and leases.
func (s *Source) Limits(ctx context.Context, _ Ask) (Page, error) {
	limits, err := s.Op.Limits().List(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.Op.Limits().Holders(ctx, "")
	if err != nil {
		return nil, err
	}
	p := &limitsPage{
		Head:  head("limits", "Limits and leases", "edda limit list").audited("limit", ""),
		shown: view.Limits(limits, held).View().JSON,
	}
	of := words.ByLimit(held)
	for _, l := range limits {
		p.Limits = append(p.Limits, limited(l, of[l.Name]))
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

func limited(l operate.LimitInfo, held []operate.Holder) limitRow {
	out := limitRow{LimitInfo: l, Forms: act.Limited(l)}
	if !strings.HasPrefix(l.Name, "named/") {
		out.Endpoint = l.Name
	}
	for n := range held {
		state := "held"
		if held[n].Draining {
			state = "draining"
		}
		out.Cells = append(out.Cells, cell{state, &held[n]})
	}
	if out.Held, out.Draining = len(out.Cells), 0; out.Held >= mostCells || l.Limit > mostCells {
		out.LimitInfo, out.Cells = l, nil
		return out
	}
	for _, c := range out.Cells { // the table and the cells are read one after the other, and must agree
		if c.State == "draining" {
			out.Draining++
		}
	}
	for len(out.Cells) < l.Limit+out.Draining {
		out.Cells = append(out.Cells, cell{State: "free"})
	}
	if len(out.Cells) <= mostLines {
		out.Lines = out.Cells
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
