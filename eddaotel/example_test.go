package eddaotel_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/internal/test/pgtest"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// The example uses the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool, start = pgtest.Must, pgtest.Example, pgtest.Start

type Charge struct{ Order string }

func (Charge) Kind() string { return "card.charge" }

// Each handler call of a bus is a span. The trace of a message continues in the messages that its handler sends.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	exporter := tracetest.NewInMemoryExporter() // in a program, an exporter to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	tracing := eddaotel.New(eddaotel.Options{TracerProvider: provider, Root: 1})
	options := bus.Options{}
	tracing.Bus(&options)
	b, err := bus.New(pool, options)
	check(err)
	charged := make(chan struct{})
	charge := func(*bus.Context, Charge) error { close(charged); return nil }
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{}, bus.Handle(charge))
	check(err)
	stop := start(ctx, bank)
	_, err = b.Send(ctx, Charge{Order: "7"})
	check(err)
	<-charged
	stop()
	for _, span := range exporter.GetSpans() {
		if span.SpanKind == trace.SpanKindConsumer {
			fmt.Println(span.Name)
		}
	}
	// Output: process bank
}
