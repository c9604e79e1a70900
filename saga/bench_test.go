package saga_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/saga"
)

const steps = 200

// benchmarkBatch steps 200 messages on one instance whose state has this number of entries.
func benchmarkBatch(b *testing.B, entries int) {
	d := saga.Define("order", saga.Options{}, saga.StartedBy(byOrder, func(o *order, ctx *saga.Context, m place) error {
		o.Total += m.Total
		o.Notes["last"] = m.Act
		return nil
	}))
	notes := map[string]string{}
	for i := range entries {
		notes[fmt.Sprintf("key %d", i)] = "twenty bytes of text"
	}
	in := deliver(place{Order: "7", Total: 1})
	tn := turn(in)
	i := storedWith(b, notes)
	b.ReportMetric(float64(len(i.State)), "state-bytes")
	b.ReportAllocs()
	for b.Loop() {
		s, err := d.Open(i)
		if err != nil {
			b.Fatal(err)
		}
		for range steps {
			call, err := d.Prepare(in, nil)
			if err != nil {
				b.Fatal(err)
			}
			if out := s.Step(context.Background(), tn, call); out.Err != nil {
				b.Fatal(out.Err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "µs/step")
}

func storedWith(b *testing.B, notes map[string]string) saga.Instance {
	state, err := saga.JSON.Encode(stateMessage{Total: 1, Notes: notes})
	if err != nil {
		b.Fatal(err)
	}
	return saga.Instance{ID: numbered(50), Key: "7", StateVersion: 1, Version: 1, State: state}
}

type stateMessage struct {
	Total int64
	Notes map[string]string
}

func (stateMessage) Kind() string { return "state" }

func BenchmarkBatch(b *testing.B) {
	for _, entries := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) { benchmarkBatch(b, entries) })
	}
}

// BenchmarkEncode measures the check for text that is not UTF-8: ordinary text costs a scan, and text with U+FFFD
// costs a walk over the value.
func BenchmarkEncode(b *testing.B) {
	for name, text := range map[string]string{"100 bytes": strings.Repeat("x", 90), "U+FFFD": strings.Repeat("x", 87) +
		"\uFFFD"} {
		b.Run(name, func(b *testing.B) {
			m := paid{Order: text}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := saga.JSON.Encode(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
