package eddaotel

import (
	"context"
	"testing"

	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The reading without the propagator has the same result as the propagator.
func FuzzParse(f *testing.F) {
	const of, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, s := range []string{
		"00-" + of + "-" + span + "-00", "00-" + of + "-" + span + "-01", "00-" + of + "-" + span + "-03",
		"00-" + of + "-" + span + "-04", "00-" + of + "-" + span + "-01-", "01-" + of + "-" + span + "-01",
		"00-0AF7651916CD43DD8448EB211C80319C-" + span + "-01", "00-" + of + "-b7ad6b716920333g-01",
		"00-00000000000000000000000000000000-" + span + "-01", "00-" + of + "-0000000000000000-01",
		"00_" + of + "_" + span + "_01", "", "none",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		carrier := propagation.MapCarrier{traceparentHeader: s}
		want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
		if got, ok := parse(s); ok && !got.Equal(want) {
			t.Errorf("%q is %v, want %v", s, got, want)
		} else if !ok && want.IsValid() && len(s) == 55 && s[:2] == "00" && lower(s) {
			t.Errorf("%q is not read", s)
		}
	})
}

func lower(s string) bool {
	for _, r := range s {
		if r >= 'A' && r <= 'F' {
			return false
		}
	}
	return true
}

func TestIsStandard(t *testing.T) {
	standard, baggage := propagation.TraceContext{}, propagation.Baggage{}
	for _, c := range []struct {
		p    propagation.TextMapPropagator
		want bool
	}{
		{standard, true}, {baggage, false}, {other{standard}, false},
		{propagation.NewCompositeTextMapPropagator(standard, baggage), true},
		{propagation.NewCompositeTextMapPropagator(standard, other{baggage}), false},
		{propagation.NewCompositeTextMapPropagator(), false},
		{propagation.NewCompositeTextMapPropagator(standard, standard), false},
	} {
		if got := isStandard(c.p); got != c.want {
			t.Errorf("%#v is standard: %t, want %t", c.p, got, c.want)
		}
	}
}

// other is a propagator of a program.
type other struct{ propagation.TextMapPropagator }

// The propagator reads a message that has more than a traceparent.
func TestPlain(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		headers []string
		want    bool
	}{
		{[]string{"tenant", "7"}, false}, {[]string{"tenant", "7", traceparentHeader, parent}, true},
		{[]string{traceparentHeader, parent, tracestateHeader, "a=b"}, false},
		{[]string{baggageHeader, "a=b", traceparentHeader, parent}, false},
	} {
		var i saga.Info
		for n := 0; n < len(c.headers); n += 2 {
			i.AddHeader(c.headers[n], c.headers[n+1])
		}
		of, ok := plain(&i)
		if ok != c.want || ok && (!of.IsSampled() || !of.IsRemote()) {
			t.Errorf("%v: %v, %t; want %t", c.headers, of, ok, c.want)
		}
	}
}
