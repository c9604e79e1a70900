package eddaotel

import (
	"reflect"

	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Headers of the standard propagators.
const (
	traceparentHeader = "traceparent"
	tracestateHeader  = "tracestate"
	baggageHeader     = "baggage"
)

// isStandard reports whether p reads a trace from traceparent and tracestate according to W3C, and otherwise only
// baggage. Then plain reads the same as p, in a fraction of the time.
func isStandard(p propagation.TextMapPropagator) bool {
	traces := 0
	for _, part := range partsOf(p) {
		switch part.(type) {
		case propagation.TraceContext:
			traces++
		case propagation.Baggage:
		default:
			return false
		}
	}
	return traces == 1
}

var composite = reflect.TypeOf(propagation.NewCompositeTextMapPropagator())

// partsOf returns the propagators that p consists of.
func partsOf(p propagation.TextMapPropagator) []propagation.TextMapPropagator {
	if v := reflect.ValueOf(p); v.Type() == composite {
		var all []propagation.TextMapPropagator
		reflect.ValueOf(&all).Elem().Set(v.Convert(reflect.TypeOf(all)))
		return all
	}
	return []propagation.TextMapPropagator{p}
}

// plain returns the context that a message carries. ok is false if its headers have more than a traceparent of version
// 00, or if that is invalid: then the propagator has to read them.
func plain(i *saga.Info) (of trace.SpanContext, ok bool) {
	parent := ""
	for name, value := range i.Headers() {
		switch name {
		case traceparentHeader:
			parent = value
		case tracestateHeader, baggageHeader:
			return of, false
		}
	}
	return parse(parent)
}

// parse reads a traceparent of version 00.
func parse(s string) (of trace.SpanContext, ok bool) {
	const length, trace0, span0, flags0 = 55, 3, 36, 53
	if len(s) != length || s[:trace0] != "00-" || s[span0-1] != '-' || s[flags0-1] != '-' {
		return of, false
	}
	var c trace.SpanContextConfig
	var flags [1]byte
	if !unhex(c.TraceID[:], s[trace0:]) || !unhex(c.SpanID[:], s[span0:]) || !unhex(flags[:], s[flags0:]) {
		return of, false
	}
	c.TraceFlags, c.Remote = trace.TraceFlags(flags[0]), true
	of = trace.NewSpanContext(c)
	return of, of.IsValid() && c.TraceFlags&^(trace.FlagsSampled|trace.FlagsRandom) == 0
}

// unhex fills to from the lower-case hexadecimal digits at the beginning of s.
func unhex(to []byte, s string) bool {
	bad := byte(0)
	for n := range to {
		high, low := digits[s[2*n]], digits[s[2*n+1]]
		bad |= high | low
		to[n] = high<<4 | low
	}
	return bad < noDigit
}

const noDigit = 16

// digits maps lower-case hexadecimal digits to their values, and other bytes to noDigit.
var digits = func() (of [256]byte) {
	for n := range of {
		of[n] = noDigit
	}
	for value, digit := range []byte("0123456789abcdef") {
		of[digit] = byte(value)
	}
	return of
}()
