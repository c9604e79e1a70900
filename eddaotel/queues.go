package eddaotel

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/operate"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

const queueTimeout = 5 * time.Second // of one reading of the queues

// gauges are the gauges of the queues.
type gauges struct {
	ready, delayed, claimed, parked metric.Int64ObservableGauge
	lag                             metric.Float64ObservableGauge
}

// Watch adds gauges of the queues of a schema, which are read at each collection, until stop is called. If several
// processes watch the same queues, each reads them. Reading takes at most 5 s. A collection that cannot read the queues
// returns the error, and no old numbers. Watch returns an error if an instrument cannot be made or registered.
func (t *Tracing) Watch(o *operate.Operator) (stop func() error, err error) {
	var g gauges
	var faults [5]error
	count := func(fault *error, name, what string) (gauge metric.Int64ObservableGauge) {
		gauge, *fault = t.metrics.meter.Int64ObservableGauge("edda.queue."+name, metric.WithUnit("{message}"),
			metric.WithDescription(what))
		return gauge
	}
	g.ready = count(&faults[0], "ready", "Messages that are due; an estimate beyond 100,000.")
	g.delayed = count(&faults[1], "delayed", "Messages that are due later; an estimate beyond 100,000.")
	g.claimed = count(&faults[2], "claimed", "Messages that a leased endpoint is handling.")
	g.parked = count(&faults[3], "parked", "Messages of an ordered endpoint that wait behind others of their key.")
	g.lag, faults[4] = t.metrics.meter.Float64ObservableGauge("edda.queue.lag", metric.WithUnit("s"),
		metric.WithDescription("How long the first due message has been due; 0 without one."))
	if err := errors.Join(faults[:]...); err != nil {
		return nil, err
	}
	registered, err := t.metrics.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		return g.observe(ctx, o, to)
	}, g.ready, g.delayed, g.claimed, g.parked, g.lag)
	if err != nil {
		return nil, err
	}
	return registered.Unregister, nil
}

func (g *gauges) observe(ctx context.Context, o *operate.Operator, to metric.Observer) error {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	all, err := o.Queues().List(ctx)
	if err != nil {
		return err
	}
	for _, q := range all {
		of := metric.WithAttributes(semconv.MessagingDestinationName(q.Endpoint))
		to.ObserveInt64(g.ready, q.Ready, of)
		to.ObserveInt64(g.delayed, q.Delayed, of)
		to.ObserveInt64(g.claimed, q.Claimed, of)
		to.ObserveInt64(g.parked, q.Parked, of)
		to.ObserveFloat64(g.lag, q.Lag.Seconds(), of)
	}
	return nil
}
