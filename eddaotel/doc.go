// Package eddaotel makes spans and metrics of OpenTelemetry of what a bus does. It is a module of its own, and uses the
// API of OpenTelemetry alone: the program chooses the SDK.
//
//	tracing := eddaotel.New(eddaotel.Options{})
//	options := bus.Options{}
//	tracing.Bus(&options)
//	b, err := bus.New(pool, options)
//
// # Promise
//
// Spans and metrics follow the semantic conventions for messaging, version 1.43.0. A message carries the context of its
// sender in its headers, across relays and brokers too. A process span says how a handler returned; the settle span
// that links to it says what became of the message, after the commit.
//
// # States
//
// Which handler calls have a span, until their transaction ends: at most 100,000, in memory.
//
// # Failures
//
// Nothing in this package fails a message. A process that crashes before its transaction has ended leaves process spans
// without a settle span.
package eddaotel
