package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/edda-go/edda/operate/vitals"
)

// Vitals shows a report on the vitals of a database: a line for each, the worst first, with the remedy below it, and
// the query of the session in question.
func Vitals(r *vitals.Report) View {
	v := View{JSON: Object{"at", r.At, "role", r.Role, "level", r.Worst().String(),
		"vitals", objects(r.Vitals, vitalOf)}}
	v.JSON = append(v.JSON, listsOf(r)...)
	for _, one := range r.Vitals {
		v.Parts = append(v.Parts, vitalLines(r, one)...)
	}
	return v
}

func vitalOf(v vitals.Vital) Object {
	return Object{"vital", v.Name, "subject", v.Subject, "level", v.Level.String(), "value", v.Value.Number,
		"unit", v.Value.Unit, "threshold", v.Threshold.Number, "sentence", v.Sentence, "do", v.Do}
}

// listsOf returns the lists of a report, with their additional fields.
func listsOf(r *vitals.Report) Object {
	tables := objects(r.Tables, func(t vitals.Table) Object {
		return Object{"table", t.Name, "endpoint", t.Endpoint, "live", t.Live, "dead", t.Dead,
			"vacuumed", timeOrNull(t.Vacuumed), "autovacuum", !t.Off}
	})
	clients := objects(r.Clients, func(c vitals.Client) Object {
		return Object{"application", c.Application, "connections", c.Connections}
	})
	slots := objects(r.Slots, func(s vitals.KeptWAL) Object {
		return Object{"slot", s.Slot, "active", s.Active, "bytes", s.Bytes}
	})
	return Object{"holders", objects(r.Holders, holderOf), "tables", tables, "clients", clients, "slots", slots,
		"connections_used", r.Server.Used, "connections_allowed", r.Server.Allowed, "tables_in_schema", r.Server.Tables}
}

func holderOf(h vitals.Holder) Object {
	return Object{"kind", h.Kind, "name", h.Name, "database", h.Database, "role", h.Role, "application", h.Application,
		"state", h.State, "catalogs_only", h.Catalogs, "transactions", h.Transactions, "held_seconds", h.Held.Seconds(),
		"queried", timeOrNull(h.Queried), "query", h.Query}
}

func vitalLines(r *vitals.Report, v vitals.Vital) (lines []Part) {
	number := ""
	if v.Threshold.Unit != "" {
		number = fmt.Sprintf(" [%v, %v from %v]", v.Value, max(v.Level, vitals.Warn), v.Threshold)
	}
	lines = []Part{linef("%-5v %-12s %s%s", v.Level, v.Name, v.Sentence, number)}
	if v.Do != "" {
		lines = append(lines, linef("      do: %s", v.Do))
	}
	for _, h := range r.Holders {
		if v.Name == vitals.Snapshot && v.Level > vitals.OK && h.Title() == v.Subject && h.Query != "" {
			lines = append(lines, linef("      query: %s", strconv.Quote(strings.TrimSpace(h.Query))))
		}
	}
	return lines
}
