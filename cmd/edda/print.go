package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/saga"
)

// result is what a command prints: a value for --json, and a page for people.
type result struct {
	value object
	page  func(p *page)
}

// object is a JSON object: names and values in turns, in the order in which they are printed.
type object []any

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for n, part := range o {
		if n%2 == 1 {
			b.WriteByte(':')
		} else if n > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(part); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// lineOf is a result that is one line for people.
func lineOf(value object, format string, args ...any) result {
	return result{value: value, page: func(p *page) { p.line(format, args...) }}
}

// listing is a result that is a table for people.
type listing struct {
	name string  // of the list in JSON
	none string  // what a person reads if the list is empty
	next *string // where the next page begins, "" at the end; nil for a command that shows all
}

// row is one thing of a listing, for programs and for people.
type row struct {
	value object
	cells []string
}

func rows[T any](all []T, of func(T) (object, []string)) (rows []row) {
	for _, one := range all {
		value, cells := of(one)
		rows = append(rows, row{value, cells})
	}
	return rows
}

// of makes the listing of rows; head names the columns, with bars between them.
func (l listing) of(head string, rows []row) result {
	values, table := []object{}, [][]string{strings.Split(head, "|")}
	for _, r := range rows {
		values, table = append(values, r.value), append(table, r.cells)
	}
	value, next := object{l.name, values}, ""
	if l.next != nil {
		next = *l.next
		value = append(value, "next", next)
	}
	return result{value: value, page: func(p *page) {
		if len(rows) == 0 && l.none != "" {
			p.line("%s", l.none)
		} else {
			p.table(table)
		}
		p.more(next)
	}}
}

// inSchema puts the schema's name into a text.
func (t *tool) inSchema(text string) string { return fmt.Sprintf(text, t.schemaName()) }

func (t *tool) print(r result) error {
	text := ""
	if t.json {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(r.value); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		text = escapeJSON(b.String())
	} else {
		p := &page{}
		r.page(p)
		text = p.text.String()
	}
	if _, err := io.WriteString(t.out, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// page is a text for people. Everything given to it is escaped.
type page struct{ text strings.Builder }

func (p *page) line(format string, args ...any) {
	p.text.WriteString(escape(fmt.Sprintf(format, args...)) + "\n")
}

// more says how to see the next page.
func (p *page) more(next string) {
	if next != "" {
		p.line("There may be more: --after %s", quoted(next))
	}
}

// block is a text of several lines, set in.
func (p *page) block(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		p.text.WriteString("    " + escape(line) + "\n")
	}
}

// table writes aligned columns. The first row is its head.
func (p *page) table(rows [][]string) {
	w := tabwriter.NewWriter(&p.text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for n, cell := range row {
			if cells[n] = escape(cell); cell == "" {
				cells[n] = "-"
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // into a strings.Builder
	}
	_ = w.Flush()
}

// fields writes names and values below each other.
func (p *page) fields(pairs ...string) {
	var rows [][]string
	for n := 0; n+1 < len(pairs); n += 2 {
		rows = append(rows, []string{pairs[n], pairs[n+1]})
	}
	p.table(rows)
}

// moment is a time in a table: UTC, to the millisecond.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// jsonTime is a time in JSON, null when there is none.
func jsonTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// span is a duration that a person reads.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// jsonID is an id in JSON, null when there is none.
func jsonID(id saga.ID) *saga.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

func idText(id saga.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// bodyOf is the bytes of a message in JSON: as text if they are UTF-8.
func bodyOf(data []byte) object {
	if utf8.Valid(data) {
		return object{"body", string(data)}
	}
	return object{"body_base64", base64.StdEncoding.EncodeToString(data)}
}

// pretty sets a JSON text in; any other stays as it is.
func pretty(data []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return string(data)
	}
	return b.String()
}
