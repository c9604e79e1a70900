package view

import (
	"cmp"
	"strconv"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
)

// Endpoints shows the installed endpoints with their settings.
func Endpoints(all []operate.EndpointSettings) List {
	return listOf("endpoints", "ENDPOINT|STATE|SINCE|PAUSED BY|REASON|CONCURRENCY|BY|HISTORY", all, endpointRow)
}

func endpointRow(s operate.EndpointSettings) Row {
	state, workers := "open", "program"
	if s.Relay {
		workers = "-"
	}
	if s.Paused {
		state = "paused"
	}
	if s.Concurrency > 0 {
		workers = strconv.Itoa(s.Concurrency)
	}
	return Row{
		// a concurrency of null: the program's own number applies
		JSON: append(Object{"endpoint", s.Endpoint, "paused", s.Paused, "paused_at", timeOrNull(s.PausedAt), "reason",
			s.Reason, "paused_by", s.PausedBy, "concurrency", numberOrNull(max(s.Concurrency, 0)), "relay", s.Relay},
			historyOf(s.History)...),
		Cells: []string{s.Endpoint, state, Moment(s.PausedAt), s.PausedBy, Shortened(s.Reason, 60), workers,
			consumer(s.Relay), historyText(s.History)},
	}
}

// EndpointHistory shows how much of the history of an endpoint's messages is set to be kept.
func EndpointHistory(endpoint string, o history.Options) View {
	return View{JSON: append(Object{"endpoint", endpoint}, historyOf(o)...),
		Parts: []Part{linef("Endpoint %s keeps the history that is set: %s.", endpoint, historyText(o))}}
}

// historyOf returns null for the sample if the program's own applies.
func historyOf(o history.Options) Object {
	return Object{"history", o.Level.String(), "history_sample", numberOrNull(o.Sample)}
}

// historyText returns the setting, or "program" if nothing is set.
func historyText(o history.Options) string {
	text := cmp.Or(o.Level.String(), "program")
	if o.Sample > 0 {
		text += " " + percent(o.Sample)
	}
	return text
}

func consumer(relay bool) string {
	if relay {
		return "relay"
	}
	return "endpoint"
}
