package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// Map shows which endpoints send which kinds to which endpoints.
func Map(m *operate.Map) View {
	v := View{Mermaid: mapMermaid(m), JSON: Object{"endpoints", objects(m.Endpoints, mappedOf), "edges",
		objects(m.Edges, edgeOf), "faults", objects(m.Faults, faultOf), "messages", m.Messages, "since",
		timeOrNull(m.Since), "until", timeOrNull(m.Until)}}
	table := Table{Columns: []string{"FROM", "SAGA", "KIND", "TO", "SEEN", "A MINUTE"}}
	for _, e := range m.Edges {
		table.Rows = append(table.Rows, []string{words.Sender(e), e.Saga, e.Kind, e.To, wide(e.Seen),
			words.Rate(e.PerMinute)})
	}
	v.Parts = []Part{table, Line(words.Basis(m))}
	for _, f := range m.Faults {
		v.Parts = append(v.Parts, linef("%s: %s", f.Endpoint, f.Says))
	}
	return v
}

func faultOf(f operate.Fault) Object {
	return Object{"endpoint", f.Endpoint, "kind", f.Kind, "says", f.Says}
}

func mappedOf(e operate.MapEndpoint) Object {
	return Object{"endpoint", e.Name, "relay", e.Relay, "kinds", texts(e.Kinds), "sagas", texts(e.Sagas)}
}

func edgeOf(e operate.Edge) Object {
	return Object{"from", e.From, "saga", e.Saga, "kind", e.Kind, "to", e.To, "event", e.Event, "seen", e.Seen,
		"per_minute", e.PerMinute}
}

// Paces shows the rates of endpoints, each with all its sagas and plain handlers.
func Paces(all []operate.Pace) List {
	return listOf("paces", "ENDPOINT|A MINUTE|HANDLED|RETRIED|DEAD|LAST 60 MINUTES", all, func(p operate.Pace) Row {
		r := &p.Recent
		cells := []string{p.Endpoint, strconv.FormatFloat(p.PerMinute, 'f', 1, 64)}
		if r.Known() {
			cells = append(cells, sumOf(r.Handled[:]), sumOf(r.Retried[:]), sumOf(r.Dead[:]),
				barsOf(r.Handled[:])+untold(r.Untold))
		} else {
			cells = append(cells, "", "", "", "programs of an older version count by the hour")
		}
		return Row{JSON: append(Object{"endpoint", p.Endpoint}, paceOf(&p)...), Cells: cells}
	})
}

// paceOf returns the rate of an endpoint. Lists end with the current hour or minute. Lists of minutes are null if
// only programs that count by the hour have counted.
func paceOf(p *operate.Pace) Object {
	r := &p.Recent
	minutes := Object{"handled_by_minute", nil, "retried_by_minute", nil, "dead_by_minute", nil}
	if r.Known() {
		minutes = Object{"handled_by_minute", r.Handled, "retried_by_minute", r.Retried, "dead_by_minute", r.Dead}
	}
	return append(append(Object{"handled_per_minute", p.PerMinute, "over_seconds", p.Over.Seconds(),
		"handled_by_hour", p.Handled}, minutes...), "not_by_minute", r.Untold)
}

func untold(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d that programs of an older version counted by the hour)", n)
}

func sumOf(numbers []int64) string {
	sum := int64(0)
	for _, n := range numbers {
		sum += n
	}
	return strconv.FormatInt(sum, 10)
}

// barsOf draws numbers as bars of text, with a line at the bottom for 0.
func barsOf(numbers []int64) string {
	heights := []rune("▂▃▄▅▆▇█")
	most := int64(1)
	for _, n := range numbers {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range numbers {
		if n == 0 {
			b.WriteRune('▁')
			continue
		}
		b.WriteRune(heights[(n*int64(len(heights))-1)/most])
	}
	return b.String()
}
