package vitals

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// deadRows judges the tables of the schema: one vital for each that has too many dead rows, or one for the worst.
func (f *facts) deadRows(limits Thresholds) (vitals []Vital) {
	for n, t := range f.report.Tables {
		if v := f.deadRowsOf(t, limits); v.Level > OK || n == 0 {
			vitals = append(vitals, v)
		}
	}
	if len(vitals) > 1 && vitals[0].Level == OK { // the table with the most dead rows is OK, but a smaller one is not
		vitals = vitals[1:]
	}
	if len(vitals) == 1 && vitals[0].Value.Number == 0 {
		vitals[0].Subject, vitals[0].Sentence = "", "No table of the schema has dead rows."
	}
	return vitals
}

func (f *facts) deadRowsOf(t Table, limits Thresholds) Vital {
	v := Vital{Name: DeadRows, Subject: t.Title(), Value: Quantity{float64(t.Dead), "rows"}}
	since, vacuumed := f.sinceVacuum(t)
	bound := limits.DeadRows
	switch on := !t.Off && f.settings["autovacuum"] != "off"; {
	case on && !vacuumed.IsZero() && since < limits.VacuumedWithin: // vacuum reaches it, but has much to do
		bound = never
	case on && vacuumed.IsZero(): // the table may be new
		bound.Bad = never.Bad
	}
	v.Level, _ = bound.judge(v.Value.Number, v.Value.Unit)
	_, v.Threshold = limits.DeadRows.judge(v.Value.Number, v.Value.Unit)
	when := "it was never vacuumed"
	if !vacuumed.IsZero() {
		when = "its last vacuum was " + (Quantity{since.Seconds(), "s"}).String() + " ago"
	}
	v.Sentence = says("%s has %s dead rows beside %s living ones, and %s.", t.Title(), number(t.Dead), number(t.Live),
		when)
	if v.Level > OK {
		v.Do = says("end the holder of an old snapshot, if there is one; otherwise check whether autovacuum has "+
			"workers "+
			"left (SELECT * FROM pg_stat_progress_vacuum; autovacuum_max_workers), or run VACUUM %s.", f.table(t))
	}
	return v
}

func (f *facts) sinceVacuum(t Table) (since time.Duration, last time.Time) {
	if t.Vacuumed.IsZero() {
		return 0, t.Vacuumed
	}
	return max(f.report.At.Sub(t.Vacuumed), 0), t.Vacuumed
}

// autovacuum judges whether autovacuum is on.
func (f *facts) autovacuum(limits Thresholds) (vitals []Vital) {
	if f.settings["autovacuum"] == "off" {
		vitals = append(vitals, Vital{Name: Autovacuum, Level: Bad,
			Sentence: "Autovacuum is off for the whole server: nothing removes the rows of handled messages.",
			Do:       "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()."})
	}
	shown := int64(0)
	for _, t := range f.report.Tables {
		if !t.Off || shown == listed {
			continue
		}
		shown++
		v := Vital{Name: Autovacuum, Subject: t.Title(), Level: Warn, Value: Quantity{float64(t.Dead), "rows"},
			Sentence: says("autovacuum is off for %s, which has %s dead rows: nothing removes them.", t.Title(),
				number(t.Dead)),
			Do: "ALTER TABLE " + f.table(t) + " RESET (autovacuum_enabled)."}
		if level, begins := limits.DeadRows.judge(float64(t.Dead), "rows"); level > OK {
			v.Level, v.Threshold = Bad, begins
		}
		vitals = append(vitals, v)
	}
	if f.off > shown {
		vitals = append(vitals, Vital{Name: Autovacuum, Subject: "more tables", Level: Warn,
			Sentence: says("autovacuum is off for %s more tables of the schema.", number(f.off-shown)),
			Do:       "SELECT oid::regclass FROM pg_class WHERE reloptions::text LIKE '%autovacuum_enabled%'."})
	}
	if len(vitals) == 0 {
		vitals = []Vital{{Name: Autovacuum, Sentence: says("autovacuum is on for all %s tables of the schema.",
			number(f.report.Server.Tables))}}
	}
	return vitals
}

// table returns the name of a table in SQL.
func (f *facts) table(t Table) string { return pgx.Identifier{f.schema, t.Name}.Sanitize() }
