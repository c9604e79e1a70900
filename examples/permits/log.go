package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The columns that are read, named as event logs of processes name them. Others are ignored.
const (
	columnCase     = "case:concept:name"
	columnActivity = "concept:name"
	columnTime     = "time:timestamp"
	columnDeadline = "case:deadline"
)

// layouts of times that are understood.
var layouts = []string{"2006-01-02 15:04:05Z07:00", time.RFC3339}

const longestCase = 512 // bytes, the limit of a saga's key

// eventLog is the file: what is published, and the truth that the outcome is held against.
type eventLog struct {
	Name   string // of the file
	Sum    []byte // of its bytes: a kept run is checked against the file it was made from
	Events []event
	Cases  []permit
}

// event is one row of the file.
type event struct {
	Line     int // where it begins in the file; with the case it names the event
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

// readLog reads the file wholly. Events come back in the order of their time, those of one time as they stand in
// the file, and cases in the order of their first event. An error names the line and the column.
func readLog(path string) (*eventLog, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	sum := sha256.Sum256(text)
	l := &eventLog{Name: filepath.Base(path), Sum: sum[:]}
	if err := l.parse(text); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Name, err)
	}
	slices.SortStableFunc(l.Events, func(a, b event) int { return a.At.Compare(b.At) })
	if err := l.gather(); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Name, err)
	}
	return l, nil
}

func (l *eventLog) parse(text []byte) error {
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("line 1: the file is empty; want a line with the names of the columns")
	} else if err != nil {
		return err
	}
	columns, err := find(header)
	if err != nil {
		return err
	}
	for {
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err // of package csv, which names the line
		}
		line, _ := rows.FieldPos(0)
		e, err := columns.event(fields, line)
		if err != nil {
			return fmt.Errorf("line %d, %w", line, err)
		}
		l.Events = append(l.Events, e)
	}
	if len(l.Events) == 0 {
		return errors.New("line 2: there are no events below the names of the columns")
	}
	return nil
}

// gather makes the cases from the events, which are in order.
func (l *eventLog) gather() error {
	place := map[string]int{}
	for _, e := range l.Events {
		at, known := place[e.Case]
		if !known {
			at = len(l.Cases)
			place[e.Case] = at
			l.Cases = append(l.Cases, permit{Case: e.Case, Deadline: e.Deadline})
		}
		p := &l.Cases[at]
		if !p.Deadline.Equal(e.Deadline) {
			return fmt.Errorf("line %d, column %q: case %s has the deadline %s here and %s before; want one "+
				"deadline for each case",
				e.Line, columnDeadline, e.Case, show(e.Deadline), show(p.Deadline))
		}
		p.Events++
		p.Last = e
	}
	return nil
}

// columns are the places of the columns in a row.
type columns map[string]int

func find(header []string) (columns, error) {
	c := columns{}
	var missing []string
	for _, name := range []string{columnCase, columnActivity, columnTime, columnDeadline} {
		c[name] = slices.Index(header, name)
		if c[name] < 0 {
			missing = append(missing, fmt.Sprintf("%q", name))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("line 1: there is no column %s; the columns are %s", strings.Join(missing, " and none "),
			strings.Join(header, ", "))
	}
	return c, nil
}

func (c columns) event(fields []string, line int) (e event, err error) {
	e.Line = line
	if e.Case, err = c.text(fields, columnCase); err != nil {
		return e, err
	}
	if len(e.Case) > longestCase {
		return e, fmt.Errorf("column %q: a case of %d bytes; want at most %d", columnCase, len(e.Case), longestCase)
	}
	if e.Activity, err = c.text(fields, columnActivity); err != nil {
		return e, err
	}
	if e.At, err = c.time(fields, columnTime); err != nil {
		return e, err
	}
	e.Deadline, err = c.time(fields, columnDeadline)
	return e, err
}

func (c columns) text(fields []string, column string) (string, error) {
	switch text := fields[c[column]]; {
	case text == "":
		return "", fmt.Errorf("column %q: it is empty", column)
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return "", fmt.Errorf("column %q: %q is not UTF-8 text without NUL", column, text)
	default:
		return text, nil
	}
}

func (c columns) time(fields []string, column string) (time.Time, error) {
	text, err := c.text(fields, column)
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Truncate(time.Microsecond), nil // as Postgres keeps it
		}
	}
	return time.Time{}, fmt.Errorf("column %q: %q is no time; want one like 2011-10-11 13:45:40.276+02:00", column,
		text)
}

// show writes a time as the log does.
func show(t time.Time) string { return t.Format("2006-01-02 15:04:05.000000-07:00") }
