package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// layout is that of the log's times.
const layout = "2006-01-02 15:04:05.000000-07:00"

// eventLog is the file: what is published, and the truth that the outcome is compared with.
type eventLog struct {
	Events []event
	Cases  []permit
}

// event is one row of the file.
type event struct {
	Line     int // in the file; with the case it names the event
	Case     string
	Activity string
	At       time.Time
	Deadline time.Time // of the case
}

// permit is one case as the file has it.
type permit struct {
	Case     string
	Events   int
	Last     event // by event time; of two at the same time, the one further down in the file
	Deadline time.Time
}

// readLog reads the file wholly: a header, and rows of case, activity, time and deadline. Events come back in the order
// of their time, those of one time as they stand in the file, and cases in the order of their first event.
func readLog(path string) (*eventLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 {
		return nil, errors.Join(errors.New("the log has no events"), err)
	}
	l := &eventLog{}
	for n, row := range rows[1:] {
		at, errAt := time.Parse(layout, row[2])
		deadline, errDeadline := time.Parse(layout, row[3])
		if err := errors.Join(errAt, errDeadline); err != nil {
			return nil, fmt.Errorf("line %d of the log: %w", n+2, err)
		}
		l.Events = append(l.Events, event{Line: n + 2, Case: row[0], Activity: row[1], At: at, Deadline: deadline})
	}
	slices.SortStableFunc(l.Events, func(a, b event) int { return a.At.Compare(b.At) })
	place := map[string]int{}
	for _, e := range l.Events {
		at, known := place[e.Case]
		if !known {
			at = len(l.Cases)
			place[e.Case] = at
			l.Cases = append(l.Cases, permit{Case: e.Case, Deadline: e.Deadline})
		}
		l.Cases[at].Events++
		l.Cases[at].Last = e
	}
	return l, nil
}
