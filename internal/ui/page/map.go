package page

import (
	"context"
	"slices"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// mapPage shows which endpoints send which kinds to which endpoints.
type mapPage struct {
	Head
	Map operate.Map

	shown view.View
}

// JSON returns the output of the command.
func (p *mapPage) JSON() any { return p.shown.JSON }

// Mermaid returns the output of the command with --mermaid.
func (p *mapPage) Mermaid() string { return p.shown.Mermaid }

// Basis describes the sources of the map.
func (p *mapPage) Basis() string { return words.Basis(&p.Map) }

// Has reports whether an endpoint is installed. The history also names endpoints that are gone.
func (p *mapPage) Has(name string) bool {
	return slices.ContainsFunc(p.Map.Endpoints, func(e operate.MapEndpoint) bool { return e.Name == name })
}

// Map reads which endpoints send which kinds to which endpoints. The kinds that definitions handle are in the
// endpoint's subscriptions.
func (s *Source) Map(ctx context.Context, _ Ask) (Page, error) {
	m, err := s.Op.Endpoints().Map(ctx)
	if err != nil {
		return nil, err
	}
	return MapOf(m), nil
}

// MapOf returns the page of a map.
func MapOf(m operate.Map) Page {
	return &mapPage{Head: head("map", "Map", "edda map"), Map: m, shown: view.Map(&m)}
}
