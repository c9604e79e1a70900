package page

import (
	"context"
	"slices"

	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
)

// borderPage is the page of messages to and from other systems.
type borderPage struct {
	Head
	Relays []relay
	Rings  []ring
}

// relay is a relay with the messages that it has sent last.
type relay struct {
	Row   endpointRow
	Kept  []outbox.Kept
	More  bool
	Forms []act.Form
}

// ring is a ring, whose rows are kept for a time.
type ring struct {
	operate.Ring
	Forms []act.Form
}

// JSON returns the relays as in the list of queues, and the rings.
func (p *borderPage) JSON() any {
	relays, rings := []view.Object{}, []view.Object{}
	for _, r := range p.Relays {
		kept := view.Kept(outbox.KeptPage{Found: r.Kept, More: r.More}).View().JSON
		relays = append(relays, append(view.Object{"relay", r.Row}, kept...))
	}
	for _, r := range p.Rings {
		rings = append(rings, view.Ring(r.Ring).JSON)
	}
	return view.Object{"relays", relays, "rings", rings}
}

const keptShown = 10

// Border reads the relays with their copies, and how long ids and copies are kept.
func (s *Source) Border(ctx context.Context, _ Ask) (Page, error) {
	rows, err := endpointsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &borderPage{Head: head("border", "Relays and retention", "edda queue list")}
	for _, r := range rows {
		if !r.Relay {
			continue
		}
		kept, err := s.Op.Outbox().ListKept(ctx, s.Pool, outbox.KeptFilter{Endpoint: r.Name}, outbox.KeptPlace{},
			keptShown)
		if err != nil {
			return nil, err
		}
		for n := range kept.Found {
			kept.Found[n].Body = nil
		}
		p.Relays = append(p.Relays, relay{Row: r, Kept: kept.Found, More: kept.More,
			Forms: act.Relay(r.Name, !r.Paused.IsZero(), len(kept.Found) > 0)})
	}
	rings, err := s.Op.Rings(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rings, func(a, b operate.Ring) int { return len(a.Name) - len(b.Name) })
	for _, r := range rings {
		p.Rings = append(p.Rings, ring{r, act.Ring(r)})
	}
	return p, nil
}
