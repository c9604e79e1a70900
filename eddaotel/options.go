package eddaotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Options of Tracing. Every zero is a default. This package reads the globals of OpenTelemetry, and never sets them.
type Options struct {
	TracerProvider trace.TracerProvider          // nil is the global one
	MeterProvider  metric.MeterProvider          // nil is the global one
	Propagator     propagation.TextMapPropagator // nil is the global one, which does nothing until a program sets it
	Relation       Relation
	Sampled        Sampled
	// Creates makes a span for each message that a handler sends. Without it such a message carries the context of the
	// handler's span.
	Creates bool
	// Root is the part of the messages without a context, from 0 to 1, whose calls begin a trace with FollowCreator.
	// What their handlers send belongs to it. It decides alike about all messages of a conversation, and about all
	// attempts of a message; the sampler of the TracerProvider is asked too.
	Root float64
	// ClientID is messaging.client.id of every span; "" leaves it out. The resource of a TracerProvider says as much if
	// it has service.instance.id.
	ClientID string
	// Key puts the keys of saga instances into the spans. They are often personal data.
	Key bool
}

// Relation says how the span of a handler call relates to the context that the message carries.
type Relation uint8

const (
	// Auto makes it the parent, and links to it. A timeout, and a message that was due more than five seconds after it
	// was sent, as by a delay or a delayed retry, begins a new trace with a link.
	Auto   Relation = iota
	Links           // always a new trace with a link
	Parent          // always the parent, with a link
)

// Sampled says which handler calls have a span.
type Sampled uint8

const (
	// FollowCreator makes a span if the context that the message carries is sampled. A message without a context has
	// none, unless Root says otherwise.
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
