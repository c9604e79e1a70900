package view

import "github.com/edda-go/edda/operate/flow"

// Map is which kinds go from where to where.
func Map(m *flow.Map) View {
	v := View{Mermaid: mapMermaid(m), JSON: Object{"endpoints", objects(m.Endpoints, mappedOf), "edges",
		objects(m.Edges, edgeOf), "faults", objects(m.Faults, faultOf), "messages", m.Messages, "since",
		timeOrNull(m.Since), "until", timeOrNull(m.Until)}}
	table := Table{Columns: []string{"FROM", "SAGA", "KIND", "TO", "SEEN", "A MINUTE"}}
	for _, e := range m.Edges {
		table.Rows = append(table.Rows, []string{e.Sender(), e.Saga, e.Kind, e.To, wide(e.Seen), e.Rate()})
	}
	v.Parts = []Part{table, Line(m.Basis())}
	for _, f := range m.Faults {
		v.Parts = append(v.Parts, linef("%s: %s", f.Endpoint, f.Says))
	}
	return v
}

func faultOf(f flow.Fault) Object {
	return Object{"endpoint", f.Endpoint, "kind", f.Kind, "says", f.Says}
}

func mappedOf(e flow.Endpoint) Object {
	return Object{"endpoint", e.Name, "relay", e.Relay, "kinds", texts(e.Kinds), "sagas", texts(e.Sagas)}
}

func edgeOf(e flow.Edge) Object {
	return Object{"from", e.From, "saga", e.Saga, "kind", e.Kind, "to", e.To, "event", e.Event, "seen", e.Seen,
		"per_minute", e.PerMinute}
}
