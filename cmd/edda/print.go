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
)

// result is what a command prints: a value for --json, and a page for people.
type result struct {
	value any
	page  func(p *page)
}

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

// body is the bytes of a message in JSON: as text where they are one.
type body struct {
	Text   *string `json:"body,omitempty"`
	Base64 string  `json:"body_base64,omitempty"`
}

func bodyOf(data []byte) body {
	if utf8.Valid(data) {
		text := string(data)
		return body{Text: &text}
	}
	return body{Base64: base64.StdEncoding.EncodeToString(data)}
}

// pretty sets a JSON text in; any other stays as it is.
func pretty(data []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return string(data)
	}
	return b.String()
}
