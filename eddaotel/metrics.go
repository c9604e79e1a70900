package eddaotel

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// metrics are the instruments. An instrument that cannot be made does nothing.
type metrics struct {
	meter                  metric.Meter
	operation, process     metric.Float64Histogram
	sent, consumed         metric.Int64Counter
	deadLetters, conflicts metric.Int64Counter
	batchSize              metric.Int64Histogram

	mu    sync.RWMutex
	kinds map[sentKind]metric.MeasurementOption // of messages that were sent; guarded by mu
}

// sentKind is the group that a sent message is counted in.
type sentKind struct{ operation, kind string }

// mostKinds bounds the kinds whose attributes are kept: a program may make up kinds.
const mostKinds = 1000

// seconds are the buckets that the conventions advise.
var seconds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

func newMetrics(m metric.Meter) *metrics {
	histogram := func(name, what string) metric.Float64Histogram {
		return made(m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
			metric.WithExplicitBucketBoundaries(seconds...)))
	}
	counter := func(name, what string) metric.Int64Counter {
		return made(m.Int64Counter(name, metric.WithUnit("{message}"), metric.WithDescription(what)))
	}
	return &metrics{
		meter: m, kinds: map[sentKind]metric.MeasurementOption{},
		operation: histogram("messaging.client.operation.duration",
			"Duration of messaging operation initiated by a producer or consumer client."),
		process: histogram("messaging.process.duration", "Duration of processing operation."),
		sent: counter("messaging.client.sent.messages",
			"Number of messages producer attempted to send to the broker."),
		consumed: counter("messaging.client.consumed.messages",
			"Number of messages that were delivered to the application."),
		deadLetters: counter("edda.dead_letters", "Messages that failed for good and became dead letters."),
		conflicts:   counter("edda.conflicts", "Messages whose instance a concurrent transaction changed first."),
		batchSize: made(m.Int64Histogram("edda.batch.size", metric.WithUnit("{message}"),
			metric.WithDescription("Messages that one transaction took."),
			metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000))),
	}
}

// made returns an instrument, and reports an error to OpenTelemetry's error handler.
func made[I any](instrument I, err error) I {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

func (m *metrics) sentOne(ctx context.Context, operation, kind string) {
	if m.sent.Enabled(ctx) {
		m.sent.Add(ctx, 1, m.sentOf(sentKind{operation, kind}))
	}
}

// sentOf returns the attributes of messages that are sent. They are cached, because making them takes longer than
// counting.
func (m *metrics) sentOf(k sentKind) metric.MeasurementOption {
	m.mu.RLock()
	of, ok := m.kinds[k]
	m.mu.RUnlock()
	if ok {
		return of
	}
	of = metric.WithAttributeSet(attribute.NewSet(system, semconv.MessagingOperationName(k.operation),
		semconv.MessagingDestinationName(k.kind)))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kinds) < mostKinds {
		m.kinds[k] = of
	}
	return of
}

// calls returns the attributes of the calls of an endpoint.
func (m *metrics) calls(endpoint string, more ...attribute.KeyValue) metric.MeasurementOption {
	all := append([]attribute.KeyValue{
		system, semconv.MessagingOperationName(operationProcess), semconv.MessagingDestinationName(endpoint),
	}, more...)
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// counts reports whether calls are counted or measured.
func (m *metrics) counts(ctx context.Context) bool {
	return m.consumed.Enabled(ctx) || m.process.Enabled(ctx)
}

// processedOne records a call; failure is the type of its error.
func (e *consumer) processedOne(ctx context.Context, failure string, took time.Duration) {
	m, of := e.metrics, e.handled
	if failure != "" {
		of = m.calls(e.name, semconv.ErrorTypeKey.String(failure))
	}
	m.consumed.Add(ctx, 1, of)
	m.process.Record(ctx, took.Seconds(), of)
}

// operated records a transaction.
func (m *metrics) operated(ctx context.Context, name string, tx *event.Transaction, took time.Duration) {
	if !m.operation.Enabled(ctx) {
		return
	}
	of := semconv.MessagingOperationTypeSettle
	if tx.Work == event.Relay {
		of = semconv.MessagingOperationTypeSend
	}
	all := operation(name, of, tx.Endpoint)
	if tx.Err != nil {
		all = append(all, semconv.ErrorTypeKey.String(errorType(tx.Err)))
	}
	m.operation.Record(ctx, took.Seconds(), metric.WithAttributes(all...))
}

// Observe is for Rare of bus.Options, or for Events: it counts dead letters and conflicts, and measures batches. It
// does not block, and is safe for concurrent use.
func (t *Tracing) Observe(e event.Event) {
	//nolint:forbidigo // an event has no context
	ctx := context.Background()
	of := func(endpoint string) metric.MeasurementOption {
		return metric.WithAttributes(semconv.MessagingDestinationName(endpoint))
	}
	switch e := e.(type) {
	case event.DeadLettered:
		shown := "other"
		if saga.CheckName(e.Info.Kind) == nil {
			shown = e.Info.Kind
		}
		t.metrics.deadLetters.Add(ctx, 1, of(e.Endpoint), metric.WithAttributes(kind.String(shown)))
	case event.Conflicted:
		t.metrics.conflicts.Add(ctx, 1, of(e.Endpoint), metric.WithAttributes(sagaName.String(e.Saga)))
	case event.BatchDone:
		t.metrics.batchSize.Record(ctx, int64(e.Taken), of(e.Endpoint))
	}
}
