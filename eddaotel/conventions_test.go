package eddaotel_test

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// kinds are the kinds of spans that the conventions require for each type of operation. A span that sends is a PRODUCER
// only if its context is that of the message; the spans of a relay do not change the contexts of messages.
var kinds = map[string]trace.SpanKind{
	"create": trace.SpanKindProducer, "send": trace.SpanKindClient, "process": trace.SpanKindConsumer,
	"settle": trace.SpanKindClient,
}

// conforms returns how a span breaks the conventions for messaging, or "".
func conforms(span tracetest.SpanStub) string {
	get := func(key string) string { return value(span.Attributes, key) }
	of, name, destination := get("messaging.operation.type"), get("messaging.operation.name"),
		get("messaging.destination.name")
	kind, known := kinds[of]
	failed := span.Status.Code == codes.Error
	switch {
	case get("messaging.system") != "edda":
		return "its messaging.system is not edda"
	case !known || name == "" || destination == "":
		return fmt.Sprintf("operation %q of type %q, destination %q: want all three", name, of, destination)
	case span.Name != name+" "+destination:
		return fmt.Sprintf("want the name %s %s", name, destination)
	case span.SpanKind != kind:
		return fmt.Sprintf("kind %v, want %v for %s", span.SpanKind, kind, of)
	case failed != (get("error.type") != ""):
		return fmt.Sprintf("error.type %q with status %v: want both or none", get("error.type"), span.Status.Code)
	case span.Status.Code == codes.Ok:
		return "only errors set the status"
	case !span.EndTime.After(span.StartTime) && !span.EndTime.Equal(span.StartTime):
		return "it ends before it begins"
	case span.InstrumentationScope.SchemaURL != "https://opentelemetry.io/schemas/1.43.0":
		return "its schema is " + span.InstrumentationScope.SchemaURL
	}
	return conformsByNumber(span, of)
}

// conformsByNumber checks the attributes that depend on the number of messages of a span.
func conformsByNumber(span tracetest.SpanStub, of string) string {
	count, id := value(span.Attributes, "messaging.batch.message_count"), value(span.Attributes, "messaging.message.id")
	batches := of == "settle" || of == "send"
	switch {
	case !batches && count != "":
		return "messaging.batch.message_count is for spans of several messages"
	case (count == "") != (id != ""):
		return fmt.Sprintf("message id %q and count %q: want one of them", id, count)
	case count != "" && len(span.Links) == 0:
		return "a span of several messages links to them"
	case count == "1":
		return "a span of one message has no count"
	}
	if count != "" {
		for _, link := range span.Links {
			if value(link.Attributes, "messaging.message.id") == "" {
				return "a link has no messaging.message.id"
			}
		}
	}
	nowhere := func(l sdktrace.Link) bool { return !l.SpanContext.IsValid() }
	if of == "process" && slices.ContainsFunc(span.Links, nowhere) {
		return "a link leads nowhere"
	}
	return ""
}
