package page

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate/vitals"
)

// databasePage is the page of conditions of the database that slow the queues.
type databasePage struct {
	Head
	Report  vitals.Report
	Queries bool // queries of sessions are shown
	Holders []holderRow

	shown view.Object
}

// holderRow is a holder of dead rows.
type holderRow struct {
	vitals.Holder
	Since time.Time // begin of its transaction; zero if unknown
	Kill  string    // the statement that ends it, "" if it is not needed, or if no single statement does
}

// JSON returns the output of the command.
func (p *databasePage) JSON() any { return p.shown }

// Findings returns the vitals that are not well.
func (p *databasePage) Findings() []vitals.Vital {
	return slices.DeleteFunc(slices.Clone(p.Report.Vitals), func(v vitals.Vital) bool { return v.Level == vitals.OK })
}

// Oldest returns the age of the oldest holder of dead rows.
func (p *databasePage) Oldest() string { return p.value(vitals.Snapshot) }

// Freeze returns the age of the oldest transaction id.
func (p *databasePage) Freeze() string { return p.value(vitals.Freeze) }

// Log returns the size of the write-ahead log written per second, "" at the first read.
func (p *databasePage) Log() string { return p.value(vitals.WAL) }

// Dead returns how many dead rows the worst table has.
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

// vitalNames are the names of vitals for people.
var vitalNames = map[string]string{
	vitals.Snapshot: "oldest snapshot", vitals.DeadRows: "dead rows", vitals.WAL: "write-ahead log",
	vitals.Slot: "replication slot", vitals.Freeze: "transaction ids",
}

// VitalName returns the name of a vital for people.
func VitalName(v vitals.Vital) string { return cmp.Or(vitalNames[v.Name], v.Name) }

// Begins returns the threshold of a vital's level, or of the warning if the vital is well.
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

// DatabaseOf returns the page of a report; queries of sessions are only for people who may see bodies.
func DatabaseOf(report vitals.Report, queries bool) Page {
	p := &databasePage{Head: head("database", "Database", "edda vitals"), Report: report, Queries: queries}
	p.Report.Holders = slices.Clone(report.Holders)
	for n := range p.Report.Holders {
		h := &p.Report.Holders[n]
		if !queries { // they may contain customers' data
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

// blamed reports whether a vital names this holder.
func blamed(r *vitals.Report, holder string) bool {
	return slices.ContainsFunc(r.Vitals, func(v vitals.Vital) bool {
		return v.Name == vitals.Snapshot && v.Subject == holder && v.Level > vitals.OK
	})
}
