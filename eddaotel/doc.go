// Package eddaotel makes spans and metrics of OpenTelemetry from the work of a bus. It is a separate module, and
// depends only on the API of OpenTelemetry: the program chooses the SDK.
//
//	tracing := eddaotel.New(eddaotel.Options{})
//	options := bus.Options{}
//	tracing.Bus(&options)
//	b, err := bus.New(pool, options)
//
// # Promise
//
// Spans and metrics follow the semantic conventions for messaging, version 1.43.0. A message carries the context of its
// sender in its headers, across relays and brokers too. A process span records how a handler returned; the settle span
// that links to it records the fate of the message, after the commit.
//
// # States
//
// A Tracing keeps the handler calls that have a span in memory until their transaction ends: at most 100,000.
//
// # Failures
//
// No failure of this package fails a message. A process that crashes before its transaction has ended leaves process
// spans without a settle span.
package eddaotel
