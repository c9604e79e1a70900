package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/edda-go/edda/internal/ui/view"
)

// lineOf returns a view that people see as one line.
func lineOf(value view.Object, format string, args ...any) view.View {
	return view.View{JSON: value, Parts: []view.Part{linef(format, args...)}}
}

func linef(format string, args ...any) view.Line { return view.Line(fmt.Sprintf(format, args...)) }

// listed returns a list with the command for its next page; an empty list is the text none.
func listed(l view.List, none string) view.View {
	v := l.View()
	if len(l.Rows) == 0 {
		v.Parts = []view.Part{view.Line(none)}
	}
	if l.Next != "" {
		v.Parts = append(v.Parts, linef("There may be more: --after %s", quoted(l.Next)))
	}
	return v
}

// inSchema puts the schema's name into a text.
func (t *tool) inSchema(text string) string { return fmt.Sprintf(text, t.schemaName()) }

func (t *tool) print(v view.View) (err error) {
	text := textOf(v.Parts)
	if t.json {
		text, err = v.JSON.Text()
	}
	if err == nil {
		_, err = io.WriteString(t.out, text)
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// textOf returns the text of parts, escaped.
func textOf(parts []view.Part) string {
	var text strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case view.Line:
			text.WriteString(view.Escape(string(part)) + "\n")
		case view.Block:
			for line := range strings.SplitSeq(strings.TrimRight(string(part), "\n"), "\n") {
				text.WriteString("    " + view.Escape(line) + "\n")
			}
		case view.Table:
			text.WriteString(aligned(append([][]string{part.Columns}, part.Rows...)))
		case view.Fields:
			var rows [][]string
			for _, field := range part {
				rows = append(rows, []string{field.Name, field.Value})
			}
			text.WriteString(aligned(rows))
		}
	}
	return text.String()
}

// aligned aligns the cells of rows in columns.
func aligned(rows [][]string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for n, cell := range row {
			if cells[n] = view.Escape(cell); cell == "" {
				cells[n] = "-"
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // a strings.Builder does not fail
	}
	_ = w.Flush()
	return text.String()
}

// quoted quotes a text for the shell if it needs that.
func quoted(text string) string {
	if text == "" || strings.ContainsAny(text, " \t\n'\"$&|;<>()*?[]{}#~`\\!") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}
