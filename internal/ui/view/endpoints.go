package view

import (
	"cmp"
	"strconv"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
)

// Endpoints are those that are installed, with what is set for them.
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
		// a concurrency of null: each program has a number of its own
		JSON: append(Object{"endpoint", s.Endpoint, "paused", s.Paused, "paused_at", timeOrNull(s.PausedAt), "reason",
			s.Reason, "paused_by", s.PausedBy, "concurrency", numberOrNull(max(s.Concurrency, 0)), "relay", s.Relay},
			historyOf(s.History)...),
		Cells: []string{s.Endpoint, state, Moment(s.PausedAt), s.PausedBy, Shortened(s.Reason, 60), workers,
			consumer(s.Relay), historyText(s.History)},
	}
}

// EndpointHistory is what is set to be kept of the messages of an endpoint.
func EndpointHistory(endpoint string, o history.Options) View {
	return View{JSON: append(Object{"endpoint", endpoint}, historyOf(o)...),
		Parts: []Part{linef("Endpoint %s keeps the history that is set: %s.", endpoint, historyText(o))}}
}

// historyOf has null for the sample while the part of each program holds.
func historyOf(o history.Options) Object {
	return Object{"history", o.Level.String(), "history_sample", numberOrNull(o.Sample)}
}

// historyText is what is set, "program" if nothing is.
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
