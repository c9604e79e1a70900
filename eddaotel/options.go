package eddaotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Options are the options of a Tracing. The zero value of every field is a default. This package reads the globals of
// OpenTelemetry, and never sets them.
type Options struct {
	TracerProvider trace.TracerProvider          // nil is the global one
	MeterProvider  metric.MeterProvider          // nil is the global one
	Propagator     propagation.TextMapPropagator // nil is the global one, which does nothing until a program sets it
	Relation       Relation
	Sampled        Sampled
	// Creates makes a span for each message that a handler sends. Without it such a message carries the context of the
	// handler's span.
	Creates bool
	// Root is the fraction of the messages without a context, from 0 to 1, whose calls begin a trace with
	// FollowCreator. The messages that their handlers send belong to that trace. The decision is the same for all
	// messages of a conversation, and for all attempts of a message; the sampler of the TracerProvider also decides.
	Root float64
	// ClientID is messaging.client.id of every span; "" leaves it out. It is redundant if the resource of a
	// TracerProvider has service.instance.id.
	ClientID string
	// Key puts the keys of saga instances into the spans. They are often personal data.
	Key bool
}

// Relation selects how the span of a handler call relates to the context that the message carries.
type Relation uint8

const (
	// Auto makes it the parent, and links to it. A timeout, and a message that was due more than five seconds after it
	// was sent, for instance after a delay or a delayed retry, begins a new trace with a link.
	Auto   Relation = iota
	Links           // always a new trace with a link
	Parent          // always the parent, with a link
)

// Sampled selects the handler calls that have a span.
type Sampled uint8

const (
	// FollowCreator makes a span if the context that the message carries is sampled. The call of a message without a
	// context has no span, unless Root selects it.
	FollowCreator Sampled = iota
	AskSampler            // leaves it to the sampler of the TracerProvider
)

func (o Options) withDefaults() Options {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Propagator == nil {
		o.Propagator = otel.GetTextMapPropagator()
	}
	return o
}
