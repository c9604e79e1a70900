package eddaui

import (
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/ui/view"

	"github.com/edda-go/edda/internal/ui/page"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/saga"
)

// functions returns the functions for templates.
func (l *look) functions(trace string) template.FuncMap {
	return template.FuncMap{
		"file": l.file, "plain": view.Escape, "lines": view.EscapeLines, "count": words.Count, "of": words.Of,
		"short":    func(text string, most int) string { return view.Escape(view.Shortened(text, most)) },
		"stacked":  func(text string) bool { return strings.Contains(text, "\nat ") },
		"span":     words.Span,
		"seconds":  func(s page.Seconds) string { return words.Span(time.Duration(s)) },
		"shape":    words.ShapeOf,
		"clock":    func(t, now time.Time) template.HTML { return timeElement(t, words.Clock(t, now), "") },
		"ago":      func(t, now time.Time) template.HTML { return timeElement(t, words.Ago(t, now), " data-ago") },
		"age":      func(t, now time.Time) template.HTML { return timeElement(t, words.Age(t, now), " data-age") },
		"instance": page.Instance,
		"idtail":   idTail,
		"isid":     func(id saga.ID) bool { return !id.IsZero() },
		"pretty":   func(text []byte) string { return view.EscapeLines(view.Body(text)) },
		"trace":    func(id string) string { return strings.ReplaceAll(trace, "{trace}", id) },
		"segment":  url.PathEscape,
		"life":     page.LifeOf,
		"of64":     func(n int, noun string) string { return words.Of(int64(n), noun) },
		"minus":    func(a, b int) int { return a - b },
		"bytes":    view.Bytes,
		"handler":  page.Handler,
		"spark":    spark, "minutes": minutes, "drawing": mapDrawing,
		"named":  func(name string) bool { return saga.CheckName(name) == nil },
		"begins": page.Begins, "vitalname": page.VitalName,
		"critical": page.Critical, "waited": page.Waited,
		"rate": words.Rate,
		"list": func(all ...any) []any { return all },
	}
}

// timeElement returns a time as HTML, with the full time as its title, and for the script.
func timeElement(t time.Time, text, attributes string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	all := `<time datetime="` + t.UTC().Format("2006-01-02T15:04:05.000Z") + `" title="` + words.Exact(t) + `"` +
		attributes + `>` + text + `</time>`
	return template.HTML(all) //nolint:gosec // every part is made here, without special characters of HTML
}

// idTail returns the end of an id, which distinguishes ids of one moment.
func idTail(id saga.ID) string {
	text := id.String()
	return "…" + text[len(text)-8:]
}
