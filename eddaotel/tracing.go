package eddaotel

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/trace"
)

// Tracing makes the spans and metrics of one or more buses. It is safe for concurrent use.
type Tracing struct {
	options Options
	tracer  trace.Tracer
	fields  []string // headers that the propagator writes
	// the propagator is W3C's, with or without baggage
	standard bool
	metrics  *metrics
	calls    calls
}

const scope = "github.com/edda-go/edda/eddaotel"

// New returns a Tracing. It reads the globals of OpenTelemetry for options that are nil.
func New(o Options) *Tracing {
	o = o.withDefaults()
	return &Tracing{
		options: o, tracer: o.TracerProvider.Tracer(scope, trace.WithSchemaURL(schemaURL)),
		fields: o.Propagator.Fields(), standard: isStandard(o.Propagator),
		metrics: newMetrics(o.MeterProvider.Meter(scope)),
		calls:   calls{open: map[call]trace.SpanContext{}},
	}
}

// Bus sets the hooks of o. Hooks that were set before are called too: an Outgoing before that of t, so that the headers
// that it sets stay; a Middleware and an Around inside of t's. Call it before bus.New.
func (t *Tracing) Bus(o *bus.Options) {
	o.Outgoing = t.outgoingAfter(o.Outgoing)
	o.Around = t.aroundOf(o.Around)
	o.Middleware = t.middlewareOf(o.Middleware)
	o.Rare = event.Tell(o.Rare, t.Observe)
}

func (t *Tracing) outgoingAfter(before func(context.Context, *saga.Info)) func(context.Context, *saga.Info) {
	if before == nil {
		return t.Outgoing
	}
	return func(ctx context.Context, i *saga.Info) {
		before(ctx, i)
		t.Outgoing(ctx, i)
	}
}

type around = func(context.Context, *event.Transaction, func(context.Context))

func (t *Tracing) aroundOf(inner around) around {
	if inner == nil {
		return t.Around
	}
	return func(ctx context.Context, tx *event.Transaction, run func(context.Context)) {
		t.Around(ctx, tx, func(ctx context.Context) { inner(ctx, tx, run) })
	}
}

func (t *Tracing) middlewareOf(inner func(endpoint string) bus.Middleware) func(endpoint string) bus.Middleware {
	if inner == nil {
		return t.Use
	}
	return func(endpoint string) bus.Middleware {
		outer, m := t.Use(endpoint), inner(endpoint)
		if m == nil {
			return outer
		}
		return func(next bus.Handler) bus.Handler { return outer(m(next)) }
	}
}
