package page

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate/vitals"
)

// databasePage is the page of what in the database hurts the queues.
type databasePage struct {
	Head
	Report  vitals.Report
	Queries bool // of sessions are shown
	Holders []holderRow

	shown view.Object
}

// holderRow is what keeps dead rows.
type holderRow struct {
	vitals.Holder
	Since time.Time // its transaction began; zero where that is not known
	Kill  string    // the statement that ends it, "" if none is needed, or none is that simple
}

// JSON is what the command prints.
func (p *databasePage) JSON() any { return p.shown }

// Findings are the vitals that are not well.
func (p *databasePage) Findings() []vitals.Vital {
	return slices.DeleteFunc(slices.Clone(p.Report.Vitals), func(v vitals.Vital) bool { return v.Level == vitals.OK })
}

// Oldest is the age of what keeps dead rows longest, as its vital has it.
func (p *databasePage) Oldest() string { return p.value(vitals.Snapshot) }

// Freeze is the age of the oldest transaction id.
func (p *databasePage) Freeze() string { return p.value(vitals.Freeze) }

// Log is what is written to the write-ahead log in a second, "" at the first look.
func (p *databasePage) Log() string { return p.value(vitals.WAL) }

// Dead is how many dead rows the worst table has.
func (p *databasePage) Dead() (most int64) {
	for _, t := range p.Report.Tables {
		most = max(most, t.Dead)
	}
	return most
}

func (p *databasePage) value(name string) string {
	for _, v := range p.Report.Vitals {
		if v.Name == name {
			return v.Value.String()
		}
	}
	return ""
}

// vitalNames are those of vitals for people.
var vitalNames = map[string]string{
	vitals.Snapshot: "oldest snapshot", vitals.DeadRows: "dead rows", vitals.WAL: "write-ahead log",
	vitals.Slot: "replication slot", vitals.Freeze: "transaction ids",
}

// VitalName is the name of a vital for people.
func VitalName(v vitals.Vital) string { return cmp.Or(vitalNames[v.Name], v.Name) }

// Begins says where the level of a vital begins, or where a vital that is well would warn.
func Begins(v vitals.Vital) string {
	if v.Threshold.Unit == "" {
		return ""
	}
	return max(v.Level, vitals.Warn).String() + " from " + v.Threshold.String()
}

// Database reads the vitals of the database.
func (s *Source) Database(ctx context.Context, a Ask) (Page, error) {
	report, err := s.Vitals.Read(ctx)
	if err != nil {
		return nil, err
	}
	return DatabaseOf(report, a.Bodies), nil
}

// DatabaseOf is the page of a look; queries of sessions are for those who may see bodies.
func DatabaseOf(report vitals.Report, queries bool) Page {
	p := &databasePage{Head: head("database", "Database", "edda vitals"), Report: report, Queries: queries}
	p.Report.Holders = slices.Clone(report.Holders)
	for n := range p.Report.Holders {
		h := &p.Report.Holders[n]
		if !queries { // what customers wrote may stand in it
			h.Query = ""
		}
		row := holderRow{Holder: *h}
		if h.Held > 0 {
			row.Since = report.At.Add(-h.Held).Round(time.Second)
		}
		if h.Kind == "session" && blamed(&report, h.Title()) {
			row.Kill = "SELECT pg_terminate_backend(" + h.Name + ");"
		}
		p.Holders = append(p.Holders, row)
	}
	p.shown = view.Vitals(&p.Report).JSON
	return p
}

// blamed reports whether a snapshot is not well.
func blamed(r *vitals.Report, holder string) bool {
	return slices.ContainsFunc(r.Vitals, func(v vitals.Vital) bool {
		return v.Name == vitals.Snapshot && v.Subject == holder && v.Level > vitals.OK
	})
}
