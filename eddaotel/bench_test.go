package eddaotel_test

import (
	"context"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// BenchmarkCall measures a call of a handler with spans, and with a context that is not sampled.
func BenchmarkCall(b *testing.B) {
	tracing := eddaotel.New(eddaotel.Options{TracerProvider: sdktrace.NewTracerProvider(),
		Propagator: propagation.TraceContext{}})
	handler := tracing.Use("books")(func(context.Context, *saga.Delivery) error { return nil })
	for name, flags := range map[string]string{"none": "", "unsampled": "00", "sampled": "01"} {
		b.Run(name, func(b *testing.B) { benchmarkCall(b, handler, flags) })
	}
}

func benchmarkCall(b *testing.B, handler bus.Handler, flags string) {
	d := &saga.Delivery{Info: saga.Info{ID: saga.ID{15: 1}, Kind: "placed", Attempt: 1}}
	d.Info.AddHeader("tenant", "7")
	if flags != "" {
		d.Info.AddHeader("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"+flags)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := handler(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
