package main

import (
	"testing"

	"github.com/edda-go/edda/operate/vitals"
)

// The command says what a look has found; what a look finds is tested beside it.
func TestVitals(t *testing.T) {
	w := migrated(t)
	s := w.want(exitDone, "vitals", "--over", "10ms")
	says(t, s.out, " of write-ahead log were written in a second", " connections ", " of 197 connections are in use",
		"%, warn from 80 %]", "\nok    dead_rows    ", "Autovacuum is on for all ")
	var read struct {
		Level  string
		Role   string
		Vitals []struct {
			Vital, Subject, Level, Unit, Sentence, Do string
			Value, Threshold                          float64
		}
		Tables  []struct{ Table string }
		Used    int64 `json:"connections_used"`
		Allowed int64 `json:"connections_allowed"`
	}
	w.decode(&read, "vitals", "--json", "--over", "0")
	if read.Level == "" || read.Role != "edda" || len(read.Vitals) < 8 || len(read.Tables) != 20 || read.Used < 1 ||
		read.Allowed != 197 || read.Vitals[0].Level != read.Level || read.Vitals[0].Sentence == "" {
		t.Errorf("%+v", read)
	}
	for _, v := range read.Vitals {
		if v.Vital == vitals.WAL {
			t.Errorf("one look tells of %+v", v)
		}
	}
	says(t, w.want(exitUsage, "vitals", "--over", "-1s").err, "--over -1s: want 0 (read once) to 1h")
	w.exec("DROP TABLE edda.queue CASCADE")
	says(t, w.want(exitFailed, "vitals").err, "read the vitals of the database")
}
