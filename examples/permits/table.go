package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// activityRow is a line of the short table: the cases whose last activity is this one.
type activityRow struct {
	name             string
	cases            int
	earliest, latest time.Time
}

// byActivity counts the cases by their last activity, the most frequent first.
func byActivity(dossiers map[string]dossier) []activityRow {
	rows := map[string]activityRow{}
	for _, d := range dossiers {
		r, known := rows[d.Last.Name]
		if !known {
			r = activityRow{name: d.Last.Name, earliest: d.Last.At, latest: d.Last.At}
		}
		r.cases++
		if d.Last.At.Before(r.earliest) {
			r.earliest = d.Last.At
		}
		if d.Last.At.After(r.latest) {
			r.latest = d.Last.At
		}
		rows[d.Last.Name] = r
	}
	return slices.SortedFunc(maps.Values(rows), func(a, b activityRow) int {
		return cmp.Or(cmp.Compare(b.cases, a.cases), cmp.Compare(a.name, b.name))
	})
}

// printActivities is the table for a reader.
func printActivities(out io.Writer, dossiers map[string]dossier) error {
	const day = time.DateOnly
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "cases\tfirst\tlatest\tlast activity by event time")
	for _, r := range byActivity(dossiers) {
		_, _ = fmt.Fprintf(t, "%5d\t%s\t%s\t%s\n", r.cases, r.earliest.Format(day), r.latest.Format(day), r.name)
	}
	return t.Flush()
}

// byTime is the cases in the order of their last activities.
func byTime(dossiers map[string]dossier) []string {
	return slices.SortedFunc(maps.Keys(dossiers), func(a, b string) int {
		x, y := dossiers[a].Last, dossiers[b].Last
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Line, y.Line))
	})
}

// writeCases is the whole table as a file, with the names of the log's columns.
func writeCases(path string, dossiers map[string]dossier) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the cases: %w", err)
	}
	defer file.Close()
	w := csv.NewWriter(file)
	_ = w.Write([]string{columnCase, "events", columnTime, columnActivity}) // an error stays until Error is asked
	for _, key := range byTime(dossiers) {
		d := dossiers[key]
		_ = w.Write([]string{key, strconv.Itoa(len(d.Lines)), show(d.Last.At), d.Last.Name})
	}
	w.Flush()
	if err := cmp.Or(w.Error(), file.Close()); err != nil {
		return fmt.Errorf("write the cases: %w", err)
	}
	return nil
}
