package eddaotel

import (
	"context"
	"time"

	"github.com/edda-go/edda/event"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Around is for Around of bus.Options. It makes a settle span for a transaction of messages whose calls have a span:
// from the end of the last call to the end of the transaction, with a link to each call that records the fate of its
// message. It makes a relay span for a pass of a relay. Around is safe for concurrent use.
func (t *Tracing) Around(ctx context.Context, tx *event.Transaction, run func(context.Context)) {
	begun := time.Now()
	u := &underway{called: begun}
	run(context.WithValue(ctx, underwayKey{}, u))
	if tx.Taken == 0 {
		return
	}
	ended := time.Now()
	if tx.Work == event.Relay {
		t.metrics.operated(ctx, operationRelay, tx, ended.Sub(begun))
		t.relayed(ctx, tx, begun, ended)
		return
	}
	t.metrics.operated(ctx, operationSettle, tx, ended.Sub(u.called))
	t.settled(ctx, tx, u.called, ended)
}

// underway is a transaction that has not ended. Goroutines use it in turn.
type underway struct{ called time.Time } // when the last call ended, or the transaction began

type underwayKey struct{}

// underWay returns the transaction that a handler runs in, or nil.
func underWay(ctx context.Context) *underway {
	u, _ := ctx.Value(underwayKey{}).(*underway)
	return u
}

func (t *Tracing) settled(ctx context.Context, tx *event.Transaction, begun, ended time.Time) {
	keep := tx.Work == event.Finish && tx.Err != nil // it is tried again, without a second call
	if t.calls.none() {
		return
	}
	of := spanOf{name: operationSettle, kind: semconv.MessagingOperationTypeSettle, begun: begun, ended: ended}
	of.messages = tx.Messages()
	for n := range of.messages {
		m := &of.messages[n]
		span, ok := t.calls.take(call{tx.Endpoint, m.Info.ID, m.Info.Attempt}, keep)
		if !ok {
			continue
		}
		of.links = append(of.links, trace.Link{SpanContext: span, Attributes: t.settledMessage(m)})
	}
	t.transaction(ctx, tx, of)
}

// relayed links to the contexts that the messages carry.
func (t *Tracing) relayed(ctx context.Context, tx *event.Transaction, begun, ended time.Time) {
	of := spanOf{name: operationRelay, kind: semconv.MessagingOperationTypeSend, begun: begun, ended: ended}
	of.messages = tx.Messages()
	for n := range of.messages {
		m := &of.messages[n]
		creator, _ := t.creator(ctx, &m.Info)
		if creator.IsSampled() || creator.IsValid() && t.options.Sampled == AskSampler {
			of.links = append(of.links, trace.Link{SpanContext: creator, Attributes: t.settledMessage(m)})
		}
	}
	t.transaction(ctx, tx, of)
}

// spanOf has the values for the span of a transaction.
type spanOf struct {
	name         string
	kind         attribute.KeyValue // of the operation
	messages     []event.Settled
	links        []trace.Link
	begun, ended time.Time
}

// transaction makes the span of a transaction: in the trace of a single message, or in a new trace.
func (t *Tracing) transaction(ctx context.Context, tx *event.Transaction, of spanOf) {
	if len(of.links) == 0 {
		return
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(of.links...), trace.WithTimestamp(of.begun),
		trace.WithAttributes(t.operation(of.name, of.kind, tx.Endpoint)...),
		trace.WithAttributes(work.String(string(tx.Work))),
	}
	if len(of.messages) > 1 {
		options = append(options, trace.WithAttributes(semconv.MessagingBatchMessageCount(len(of.messages))))
	} else {
		options = append(options, trace.WithAttributes(message(&of.messages[0].Info)...))
	}
	if len(of.links) > 1 || t.options.Relation == Links {
		options = append(options, trace.WithNewRoot())
	} else {
		ctx = trace.ContextWithSpanContext(ctx, of.links[0].SpanContext)
	}
	_, span := t.tracer.Start(ctx, of.name+" "+tx.Endpoint, options...)
	if tx.Err != nil {
		fail(span, tx.Err)
	}
	span.End(trace.WithTimestamp(of.ended))
}

// settledMessage returns the attributes that record the fate of a message.
func (t *Tracing) settledMessage(m *event.Settled) []attribute.KeyValue {
	all := append(message(&m.Info), attempt.Int(m.Info.Attempt))
	if m.Fate != "" {
		all = append(all, fate.String(string(m.Fate)))
	}
	if m.Saga != "" {
		all = append(all, sagaName.String(m.Saga))
		if t.options.Key {
			all = append(all, sagaKey.String(m.Key))
		}
	}
	return all
}
