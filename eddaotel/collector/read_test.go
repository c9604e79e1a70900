package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// span is a span of the file.
type span struct {
	service, name string
	trace, id     string
	parent        string // "" if there is none
	attributes    pcommon.Map
	links         []link
}

type link struct{ trace, id, fate string }

func (s span) get(key string) string { return get(s.attributes, key) }

func get(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}

// lines calls each with the lines of a file of the collector.
func lines(t *testing.T, path string, each func(line []byte) error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if err := each(line); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, line)
		}
	}
}

func readSpans(t *testing.T, dir string) (all []span) {
	t.Helper()
	lines(t, filepath.Join(dir, "traces.json"), func(line []byte) error {
		traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(line)
		if err != nil {
			return err
		}
		for _, r := range traces.ResourceSpans().All() {
			for _, scope := range r.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					all = append(all, newSpan(get(r.Resource().Attributes(), "service.name"), s))
				}
			}
		}
		return nil
	})
	return all
}

func newSpan(service string, s ptrace.Span) span {
	made := span{service: service, name: s.Name(), trace: s.TraceID().String(), id: s.SpanID().String(),
		parent: s.ParentSpanID().String(), attributes: s.Attributes()}
	for _, l := range s.Links().All() {
		made.links = append(made.links,
			link{l.TraceID().String(), l.SpanID().String(), get(l.Attributes(), "edda.fate")})
	}
	return made
}

// point is the last value of an instrument for some attributes.
type point struct {
	service, metric        string
	operation, destination string
	failure                string
	count                  int // of a counter, or of the values of a histogram
	sum                    float64
	at                     pcommon.Timestamp
}

func (p point) same(q point) bool {
	return p.service == q.service && p.metric == q.metric && p.operation == q.operation &&
		p.destination == q.destination && p.failure == q.failure
}

func readPoints(t *testing.T, dir string) (all []point) {
	t.Helper()
	keep := func(p point) {
		n := slices.IndexFunc(all, p.same)
		switch {
		case n < 0:
			all = append(all, p)
		case all[n].at < p.at:
			all[n] = p
		}
	}
	lines(t, filepath.Join(dir, "metrics.json"), func(line []byte) error {
		metrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		if err != nil {
			return err
		}
		for _, r := range metrics.ResourceMetrics().All() {
			for _, scope := range r.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					pointsOf(get(r.Resource().Attributes(), "service.name"), m, keep)
				}
			}
		}
		return nil
	})
	return all
}

func pointsOf(service string, m pmetric.Metric, keep func(point)) {
	newPoint := func(of pcommon.Map, at pcommon.Timestamp, count int, sum float64) {
		keep(point{service, m.Name(), get(of, "messaging.operation.name"), get(of, "messaging.destination.name"),
			get(of, "error.type"), count, sum, at})
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			newPoint(p.Attributes(), p.Timestamp(), int(p.IntValue()), 0)
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			newPoint(p.Attributes(), p.Timestamp(), int(p.Count()), p.Sum())
		}
	}
}
