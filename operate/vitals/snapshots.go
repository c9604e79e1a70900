package vitals

import (
	"math"
	"strings"

	"github.com/edda-go/edda/internal/base/snapshot"
	"github.com/jackc/pgx/v5"
)

// pin converts the holder, so that reports and the log describe it in the same words.
func (h Holder) pin(asker string) snapshot.Pin {
	return snapshot.Pin{Kind: h.Kind, Name: h.Name, Database: h.Database, Role: h.Role, Application: h.Application,
		State: h.State, Held: h.Held, Transactions: h.Transactions, Asker: asker}
}

// Title returns a name of the holder for people, such as "session 4711". A name that others chose is quoted if it has
// characters other than letters, digits, underscores, dots and hyphens.
func (h Holder) Title() string { return h.Kind + " " + plain(h.Name) }

// snapshots judges the holders of dead rows: one vital for each holder that is too old, or one for the oldest.
func (f *facts) snapshots(limits Thresholds) (vitals []Vital) {
	for n := range f.report.Holders {
		h := &f.report.Holders[n]
		if v := f.snapshot(h, limits); v.Level > OK || n == 0 && !h.Catalogs {
			vitals = append(vitals, v)
		}
	}
	if len(vitals) == 0 {
		_, begins := limits.SnapshotSeconds.judge(0, "s")
		vitals = []Vital{{Name: Snapshot, Value: Quantity{0, "s"}, Threshold: begins,
			Sentence: "No transaction keeps dead rows."}}
	}
	return vitals
}

func (f *facts) snapshot(h *Holder, limits Thresholds) Vital {
	v := Vital{Name: Snapshot, Subject: h.Title()}
	worst := f.worstTable()
	if h.Catalogs || worst.Dead < DeadRowsWarn { // no queue has many dead rows
		limits.SnapshotSeconds.Bad, limits.Transactions.Bad = math.Inf(1), math.Inf(1)
	}
	held := f.age(h, limits, &v)
	switch {
	case h.Catalogs:
		v.Sentence = says("%s has kept deleted rows of the system catalogs for %s. It keeps no row of a queue.",
			f.named(h), held)
	case v.Level == OK:
		v.Sentence = says("the oldest snapshot has been held for %s, by %s.", held, f.named(h))
	default:
		v.Sentence = says("%s has held a snapshot for %s: vacuum cannot remove the rows that were handled since, and "+
			"each take reads over them. %s", f.named(h), held, worst.sentence())
	}
	if v.Level > OK {
		v.Do = h.pin(f.report.Role).Remedy() + "."
	}
	return v
}

// age judges v by the age of h, and returns that age in words. If the time is unknown, it uses the time for which this
// Reader has observed the same snapshot, or the number of transactions that have begun since, whichever is worse.
func (f *facts) age(h *Holder, limits Thresholds, v *Vital) string {
	transactions := Quantity{float64(h.Transactions), "transactions"}
	if h.Held > 0 {
		v.Value = Quantity{h.Held.Seconds(), "s"}
		v.Level, v.Threshold = limits.SnapshotSeconds.judge(v.Value.Number, v.Value.Unit)
		return v.Value.String() + " and " + transactions.String()
	}
	v.Value = transactions
	v.Level, v.Threshold = limits.Transactions.judge(v.Value.Number, v.Value.Unit)
	watched := Quantity{h.Watched.Seconds(), "s"}
	level, begins := limits.SnapshotSeconds.judge(watched.Number, watched.Unit)
	if level > v.Level {
		v.Value, v.Level, v.Threshold = watched, level, begins
	}
	if h.Watched == 0 {
		return transactions.String()
	}
	return "at least " + watched.String() + " and " + transactions.String()
}

// named returns the holder with the details that identify it. Texts of others are quoted.
func (f *facts) named(h *Holder) string {
	var details []string
	for _, d := range []struct{ what, value string }{
		{"application", h.Application}, {"role", h.Role}, {"database", h.Database},
	} {
		if d.value != "" {
			details = append(details, d.what+" "+quote(d.value))
		}
	}
	if h.State != "" {
		details = append(details, h.State)
	}
	if !h.Queried.IsZero() {
		details = append(details, "its last query began at "+h.Queried.Format("15:04:05 UTC"))
	}
	if len(details) == 0 {
		return h.Title()
	}
	return h.Title() + " (" + strings.Join(details, ", ") + ")"
}

// worstTable returns the table with the most dead rows.
func (f *facts) worstTable() (worst Table) {
	for _, t := range f.report.Tables {
		if t.Dead > worst.Dead {
			worst = t
		}
	}
	return worst
}

func (t Table) sentence() string {
	if t.Dead == 0 {
		return "No table has dead rows now."
	}
	return "Most dead rows are in " + t.Title() + ": " + number(t.Dead) + "."
}

// visibility judges whether the report has gaps.
func (f *facts) visibility() []Vital {
	v := Vital{Name: Visibility, Sentence: "The role " + quote(f.report.Role) + " can read the activity of all " +
		"sessions."}
	if !f.report.Visible {
		v.Level = Warn
		v.Sentence = "The role " + quote(f.report.Role) + " cannot read the activity of other roles' sessions, nor " +
			"when their transactions began: those count by the number of transactions since."
		v.Do = "GRANT pg_read_all_stats TO " + pgx.Identifier{f.report.Role}.Sanitize() + "; see docs/operate/roles.md."
	}
	return []Vital{v}
}
