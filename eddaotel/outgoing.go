package eddaotel

import (
	"context"

	"github.com/edda-go/edda/saga"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Outgoing is for Outgoing of bus.Options. A message from outside of handlers gets a span, whose context it carries. A
// message that a handler sends carries the context of the handler's span or, with Creates, of its own span. A message
// that carries a context already stays as it is. Outgoing is safe for concurrent use.
//
// The span has no length: it records that the message was made, and not that its transaction was committed.
func (t *Tracing) Outgoing(ctx context.Context, i *saga.Info) {
	name := i.Intent.String()
	if i.Firing != nil && i.RelatedTo.IsZero() {
		name = operationFire
	}
	t.metrics.sentOne(ctx, name, i.Kind)
	if t.carries(i) {
		return
	}
	if i.RelatedTo.IsZero() || t.options.Creates && trace.SpanContextFromContext(ctx).IsSampled() {
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, name+" "+i.Kind, trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(t.operation(name, semconv.MessagingOperationTypeCreate, i.Kind)...),
			trace.WithAttributes(message(i)...))
		defer span.End()
	}
	t.options.Propagator.Inject(ctx, carrier{i})
}
