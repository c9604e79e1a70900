package eddaui

import (
	"bytes"
	"encoding/json"
	"html/template"
	"strings"
	"time"

	"github.com/edda-go/edda/eddaui/internal/page"
	"github.com/edda-go/edda/eddaui/internal/words"
	"github.com/edda-go/edda/saga"
)

// functions are what templates call.
func (l *look) functions(trace string) template.FuncMap {
	return template.FuncMap{
		"file": l.file, "plain": words.Plain, "lines": words.Lines, "count": words.Count, "of": words.Of,
		"short":    func(text string, most int) string { return words.Plain(words.Short(text, most)) },
		"span":     words.Span,
		"seconds":  func(s page.Seconds) string { return words.Span(time.Duration(s)) },
		"shape":    words.ShapeOf,
		"clock":    func(t, now time.Time) template.HTML { return timeElement(t, words.Clock(t, now), "") },
		"ago":      func(t, now time.Time) template.HTML { return timeElement(t, words.Ago(t, now), " data-ago") },
		"age":      func(t, now time.Time) template.HTML { return timeElement(t, words.Age(t, now), " data-age") },
		"instance": page.Instance,
		"idtail":   idTail,
		"isid":     func(id saga.ID) bool { return !id.IsZero() },
		"pretty":   pretty,
		"trace":    func(id string) string { return strings.ReplaceAll(trace, "{trace}", id) },
		"pair":     func(a, b any) []any { return []any{a, b} },
		"list":     func(all ...any) []any { return all },
	}
}

// timeElement is a moment, with all of it for those who point at it, and for the script.
func timeElement(t time.Time, text, attributes string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	// every part is made here, and has no character that HTML knows
	return template.HTML(`<time datetime="` + t.UTC().Format("2006-01-02T15:04:05.000Z") + `" title="` + //nolint:gosec
		words.Exact(t) + `"` + attributes + `>` + text + `</time>`)
}

// idTail is the end of an id, which tells ids of one moment apart.
func idTail(id saga.ID) string {
	text := id.String()
	return "…" + text[len(text)-8:]
}

// pretty sets a JSON text in. Any other stays as it is, as do all numbers.
func pretty(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return words.Lines(string(text))
	}
	return words.Lines(b.String())
}
