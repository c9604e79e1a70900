package eddaotel

import (
	"context"

	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// carrier gives a propagator the headers of a message.
type carrier struct{ info *saga.Info }

var _ propagation.TextMapCarrier = carrier{}

func (c carrier) Get(key string) string { return c.info.Header(key) }

func (c carrier) Set(key, value string) { c.info.AddHeader(key, value) }

func (c carrier) Keys() []string {
	var keys []string
	for name := range c.info.Headers() {
		keys = append(keys, name)
	}
	return keys
}

// creator returns the context that a message carries, and ctx with the other values that the propagator reads from its
// headers.
func (t *Tracing) creator(ctx context.Context, i *saga.Info) (trace.SpanContext, context.Context) {
	if i.HeaderCount() == 0 || !t.carries(i) {
		return trace.SpanContext{}, ctx
	}
	if t.standard {
		if of, ok := plain(i); ok {
			return of, trace.ContextWithSpanContext(ctx, of)
		}
	}
	// without the span that is active, which the propagator would keep if the message carries none
	ctx = t.options.Propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), carrier{i})
	return trace.SpanContextFromContext(ctx), ctx
}

// carries reports whether a message has a context already.
func (t *Tracing) carries(i *saga.Info) bool {
	for name, value := range i.Headers() {
		for _, field := range t.fields {
			if name == field && value != "" {
				return true
			}
		}
	}
	return false
}
