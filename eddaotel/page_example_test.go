package eddaotel_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// The code of docs/guide/tracing.md. A test compares the two.
func ExampleTracing_Bus() {
	traced := func(pool *pgxpool.Pool, exporter sdktrace.SpanExporter) (*bus.Bus, error) {
		// page bus
		tracing := eddaotel.New(eddaotel.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter)),
			Propagator:     propagation.TraceContext{},
		})
		options := bus.Options{}
		tracing.Bus(&options)
		b, err := bus.New(pool, options)
		// end
		return b, err
	}
	watch := func(tracing *eddaotel.Tracing, pool *pgxpool.Pool) (stop func() error, err error) {
		// page watch
		operator, err := operate.New(pool, operate.Options{})
		if err != nil {
			return nil, err
		}
		return tracing.Watch(operator)
		// end
	}
	sql := func(ctx context.Context, tx pgx.Tx, traceparent string) error {
		// page sql
		_, err := tx.Exec(ctx, `SELECT edda.send(kind => 'order.place', body => '{"Order": "7"}',
			header => json_build_object('traceparent', $1::text))`, traceparent)
		// end
		return err
	}
	exporter := tracetest.NewInMemoryExporter()
	fmt.Println(traced != nil, watch != nil, sql != nil, len(exporter.GetSpans()))
	// Output: true true true 0
}
