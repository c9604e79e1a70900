package eddaotel

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Use returns the middleware for the handlers of one endpoint, which makes a span of each call. It is for programs that
// do not use Bus: give it to bus.Use, before all other middleware.
func (t *Tracing) Use(endpoint string) bus.Middleware {
	e := &consumer{Tracing: t, name: endpoint, handled: t.metrics.calls(endpoint)}
	return func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error { return e.process(ctx, d, next) }
	}
}

// consumer is an endpoint with its tracing.
type consumer struct {
	*Tracing
	name    string
	handled metric.MeasurementOption // the attributes of a call that has not failed
}

// process is one call of a handler. A panic of the handler continues.
func (e *consumer) process(ctx context.Context, d *saga.Delivery, next bus.Handler) (err error) {
	within := ctx
	ctx, span := e.startProcess(ctx, e.name, &d.Info)
	if span == nil && !e.metrics.counts(ctx) {
		return next(ctx, d)
	}
	tx := underWay(within)
	begun, returned := time.Now(), false
	defer func() {
		failure := ""
		switch {
		case !returned: // it panics, or ends its goroutine
			failure = panicType
		case failed(err):
			failure = errorType(err)
		}
		ended := time.Now()
		if tx != nil {
			tx.called = ended
		}
		e.processedOne(ctx, failure, ended.Sub(begun))
		if span == nil {
			return
		}
		if failure == panicType && !returned {
			span.AddEvent("exception", trace.WithAttributes(semconv.ExceptionType(panicType),
				semconv.ExceptionStacktrace(string(debug.Stack()))))
			span.SetAttributes(semconv.ErrorTypeKey.String(panicType))
			span.SetStatus(codes.Error, "the handler panicked")
		} else if failure != "" {
			fail(span, err)
		}
		if span.SpanContext().IsSampled() {
			e.calls.add(call{e.name, d.Info.ID, d.Info.Attempt}, span.SpanContext())
		}
		span.End(trace.WithTimestamp(ended))
	}()
	err = next(ctx, d)
	returned = true
	return err
}

// failed reports whether err is a failure. A message that is discarded was handled in order.
func failed(err error) bool {
	var discard *saga.DiscardError
	return !saga.Succeeded(err) && !errors.As(err, &discard)
}

// startProcess starts the span of a call, or returns nil if the call is to have no span. Then the handler's sends carry
// the context that the message carries.
func (t *Tracing) startProcess(ctx context.Context, endpoint string, i *saga.Info) (context.Context, trace.Span) {
	if t.options.Sampled == FollowCreator && !t.carries(i) && !t.root(i) {
		return ctx, nil
	}
	ambient := trace.SpanFromContext(ctx)
	creator, carried := t.creator(ctx, i)
	if ambient.SpanContext().IsValid() { // the span that is active is the parent
		carried = trace.ContextWithSpan(carried, ambient)
	}
	if t.options.Sampled == FollowCreator && !creator.IsSampled() && (creator.IsValid() || !t.root(i)) {
		return carried, nil
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(t.operation(operationProcess, semconv.MessagingOperationTypeProcess, endpoint)...),
		trace.WithAttributes(message(i)...), trace.WithAttributes(attempt.Int(i.Attempt)),
	}
	if creator.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: creator}))
	}
	if !ambient.SpanContext().IsValid() && (!creator.IsValid() || t.apart(i)) {
		options = append(options, trace.WithNewRoot())
	}
	return t.tracer.Start(carried, operationProcess+" "+endpoint, options...)
}

// root reports whether a message without a context begins a trace.
func (t *Tracing) root(i *saga.Info) bool {
	if t.options.Root <= 0 {
		return false
	}
	of := i.ConversationID
	if of.IsZero() {
		of = i.ID
	}
	const bits = 53 // of the random end of an id: the precision of a float64
	return float64(binary.BigEndian.Uint64(of[8:])&(1<<bits-1)) < t.options.Root*(1<<bits)
}

const longDelay = 5 * time.Second // a message with a longer delay begins a new trace

// apart reports whether a call begins a new trace.
func (t *Tracing) apart(i *saga.Info) bool {
	switch t.options.Relation {
	case Links:
		return true
	case Parent:
		return false
	}
	return i.Intent == saga.Timer || i.Due.Sub(i.Sent) > longDelay
}

// call identifies one attempt of one message.
type call struct {
	endpoint string
	id       saga.ID
	attempt  int
}

// calls has the spans of calls that have ended in transactions that have not.
type calls struct {
	mu   sync.Mutex
	open map[call]trace.SpanContext // guarded by mu
}

const mostCalls = 100_000 // some may have been lost with their claims

func (c *calls) add(key call, span trace.SpanContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= mostCalls {
		clear(c.open)
	}
	c.open[key] = span
}

// none reports whether no call is open.
func (c *calls) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0
}

// take returns the span of a call, and forgets it unless it must be kept for a second transaction.
func (c *calls) take(key call, keep bool) (span trace.SpanContext, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	span, ok = c.open[key]
	if ok && !keep {
		delete(c.open, key)
	}
	return span, ok
}
