package page

import (
	"context"
	"slices"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate/flow"
)

// mapPage is which kinds go from where to where.
type mapPage struct {
	Head
	Map flow.Map

	shown view.View
}

// JSON is what the command prints.
func (p *mapPage) JSON() any { return p.shown.JSON }

// Mermaid is what the command prints with --mermaid.
func (p *mapPage) Mermaid() string { return p.shown.Mermaid }

// Basis says what the map was read from.
func (p *mapPage) Basis() string { return p.Map.Basis() }

// Has reports whether an endpoint is installed. The history also names those that are gone.
func (p *mapPage) Has(name string) bool {
	return slices.ContainsFunc(p.Map.Endpoints, func(e flow.Endpoint) bool { return e.Name == name })
}

// Map reads which kinds go from where to where. What the definitions handle in an endpoint is in its subscriptions.
func (s *Source) Map(ctx context.Context, _ Ask) (Page, error) {
	m, err := s.Flow.Map(ctx)
	if err != nil {
		return nil, err
	}
	return MapOf(m), nil
}

// MapOf is the page of a map.
func MapOf(m flow.Map) Page {
	return &mapPage{Head: head("map", "Map", "edda map"), Map: m, shown: view.Map(&m)}
}
