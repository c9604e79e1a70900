package eddaprom

import (
	"sync"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/prometheus/client_golang/prometheus"
)

// Options are the options of Metrics. The zero value of every field is a default.
type Options struct {
	Namespace string // the first word of every name; "" is "edda"
	// Kinds is the number of kinds with their own label; 0 or less is 1,000. Kinds without a handled message get at
	// most half of the labels.
	Kinds        int
	QueueEvery   time.Duration // how long a reading of queues, schedule or vitals is reused; 0 or less is 5 s
	QueueTimeout time.Duration // of one reading; 0 or less is 5 s
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "edda"
	}
	if o.Kinds <= 0 {
		o.Kinds = 1000
	}
	if o.QueueEvery <= 0 {
		o.QueueEvery = 5 * time.Second
	}
	if o.QueueTimeout <= 0 {
		o.QueueTimeout = 5 * time.Second
	}
	return o
}

// Metrics is a prometheus.Collector of the events of a bus. It is safe for concurrent use.
type Metrics struct {
	options  Options
	messages messageMetrics
	batch    batchMetrics
	relay    relayMetrics
	border   borderMetrics
	endpoint endpointMetrics
	queues   *queues
	schedule *schedule
	vitals   *examined

	mu    sync.Mutex      // guards the fields below
	kinds map[string]bool // kinds with their own label; true if a message of the kind was handled
	never int             // number of kinds without a handled message
}

type (
	messageMetrics struct {
		handled, failed, retried, dead, discarded, conflicts, lost, runsFailed *prometheus.CounterVec
		processing, critical                                                   *prometheus.HistogramVec
	}
	batchMetrics struct {
		ended      *prometheus.CounterVec
		size, took *prometheus.HistogramVec
	}
	relayMetrics struct {
		messages, bytes *prometheus.CounterVec
		lag, forward    *prometheus.HistogramVec
		holding         *prometheus.GaugeVec
	}
	borderMetrics   struct{ arrived, unnamed *prometheus.CounterVec }
	endpointMetrics struct{ slow, paused *prometheus.GaugeVec }
)

// New returns Metrics with all counters at zero. Register it with a prometheus.Registerer, and use Observe as
// bus.Options.Events.
func New(o Options) *Metrics {
	o = o.withDefaults()
	in := namespace(o.Namespace)
	return &Metrics{
		options: o, kinds: map[string]bool{}, queues: newQueues(o), schedule: newSchedule(o),
		vitals:   newExamined(o),
		messages: in.messageMetrics(), batch: in.batchMetrics(), relay: in.relayMetrics(), border: in.borderMetrics(),
		endpoint: endpointMetrics{
			slow:   in.gauge("endpoint_slow", "1 while nothing succeeds, and one message at a time is tried."),
			paused: in.gauge("endpoint_paused", "1 while the endpoint is paused."),
		},
	}
}

// namespace is the first part of the names of metrics.
type namespace string

func (n namespace) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: string(n), Name: name, Help: help}, labels)
}

func (n namespace) histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: string(n), Name: name, Help: help,
		Buckets: buckets}, []string{"endpoint"})
}

func (n namespace) gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: string(n), Name: name, Help: help},
		[]string{"endpoint"})
}

func (n namespace) messageMetrics() messageMetrics {
	return messageMetrics{
		handled: n.counter("messages_handled_total", "Messages whose effects are committed.",
			"endpoint", "saga", "kind"),
		failed:  n.counter("attempts_failed_total", "Attempts that ended with an error.", "endpoint", "kind"),
		retried: n.counter("attempts_retried_total", "Failed attempts that were retried.", "endpoint", "kind"),
		dead: n.counter("messages_dead_lettered_total", "Messages that failed for good and became dead letters.",
			"endpoint", "kind"),
		runsFailed: n.counter("runs_failed_total", "Failed attempts of runs; the scheduler sends the run again "+
			"while there are retries.", "endpoint", "kind", "outcome"),
		discarded: n.counter("messages_discarded_total", "Messages consumed without effect, with a reason kept.",
			"endpoint", "kind"),
		conflicts: n.counter("conflicts_total", "Messages whose instance a concurrent transaction changed first.",
			"endpoint", "saga"),
		lost: n.counter("claims_lost_total", "Messages of leased endpoints whose claim was lost.", "endpoint"),
		processing: n.histogram("processing_seconds", "The handler's own time for one message.",
			prometheus.ExponentialBuckets(0.00001, 4, 11)),
		critical: n.histogram("critical_seconds", "The time from a message's send, or due time, to the commit of its "+
			"effects.",
			prometheus.ExponentialBuckets(0.001, 2.5, 14)),
	}
}

func (n namespace) batchMetrics() batchMetrics {
	return batchMetrics{
		ended: n.counter("batches_total", "Transactions that took messages.", "endpoint", "result"),
		size: n.histogram("batch_messages", "Messages that one transaction took.",
			[]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}),
		took: n.histogram("batch_seconds", "The time from the take of a batch to its commit.",
			prometheus.ExponentialBuckets(0.001, 2, 14)),
	}
}

func (n namespace) relayMetrics() relayMetrics {
	return relayMetrics{
		messages: n.counter("messages_relayed_total", "Messages that a relay has published and deleted.", "endpoint"),
		bytes:    n.counter("relayed_bytes_total", "Bytes of the bodies of relayed messages.", "endpoint"),
		lag: n.histogram("relay_lag_seconds", "The time from a message's send, or due time, to the commit of its "+
			"relay: of each batch, the message that waited longest.", prometheus.ExponentialBuckets(0.001, 2.5, 14)),
		forward: n.histogram("relay_forward_seconds", "The time of one call that publishes.",
			prometheus.ExponentialBuckets(0.001, 2, 14)),
		holding: n.gauge("relay_holding", "1 while this process relays."),
	}
}

func (n namespace) borderMetrics() borderMetrics {
	return borderMetrics{
		arrived: n.counter("messages_ingested_total", "Messages from other systems, by result.",
			"source", "endpoint", "state"),
		unnamed: n.counter("ingested_unnamed_total", "Messages from other systems without an id: a second delivery "+
			"is handled as a new message.", "source", "endpoint"),
	}
}

// Observe counts one event. Use it as bus.Options.Events. It does not block, and is safe for concurrent use.
func (m *Metrics) Observe(e event.Event) {
	switch e := e.(type) {
	case event.Handled:
		m.messages.handled.WithLabelValues(e.Endpoint, e.Saga, m.handledKind(e.Info.Kind)).Inc()
		m.messages.processing.WithLabelValues(e.Endpoint).Observe(e.Step.Seconds())
		m.messages.critical.WithLabelValues(e.Endpoint).Observe(e.Critical.Seconds())
	case event.Retried:
		m.messages.failed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
		m.messages.retried.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
	case event.DeadLettered:
		m.messages.failed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
		m.messages.dead.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
	case event.RunFailed:
		m.messages.failed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
		m.messages.runsFailed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind), outcome(e)).Inc()
	case event.Discarded:
		m.messages.discarded.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
	case event.Conflicted:
		m.messages.conflicts.WithLabelValues(e.Endpoint, e.Saga).Inc()
	case event.ClaimLost:
		m.messages.lost.WithLabelValues(e.Endpoint).Inc()
	case event.BatchDone:
		m.batch.ended.WithLabelValues(e.Endpoint, "committed").Inc()
		m.batch.size.WithLabelValues(e.Endpoint).Observe(float64(e.Taken))
		m.batch.took.WithLabelValues(e.Endpoint).Observe(e.Took.Seconds())
	case event.Slowed:
		m.endpoint.slow.WithLabelValues(e.Endpoint).Set(1)
	case event.Recovered:
		m.endpoint.slow.WithLabelValues(e.Endpoint).Set(0)
	case event.Paused:
		m.endpoint.paused.WithLabelValues(e.Endpoint).Set(1)
	case event.Resumed:
		m.endpoint.paused.WithLabelValues(e.Endpoint).Set(0)
	case event.Relayed:
		m.relay.messages.WithLabelValues(e.Endpoint).Add(float64(e.Messages))
		m.relay.bytes.WithLabelValues(e.Endpoint).Add(float64(e.Bytes))
		m.relay.lag.WithLabelValues(e.Endpoint).Observe(e.Lag.Seconds())
		m.relay.forward.WithLabelValues(e.Endpoint).Observe(e.Forward.Seconds())
	case event.RelayHeld:
		m.relay.holding.WithLabelValues(e.Endpoint).Set(one(e.Holding))
	case event.Ingested:
		m.arrivals(e)
	case event.BatchFailed:
		m.batch.ended.WithLabelValues(e.Endpoint, "rolled_back").Inc()
	}
}

// arrivals counts arrived messages. It creates every state at the first call, so that its rate is 0 and not absent.
func (m *Metrics) arrivals(e event.Ingested) {
	for state, n := range map[outbox.IngestState]int{
		outbox.Accepted: e.Accepted, outbox.Repeated: e.Repeated, outbox.Unwanted: e.Unwanted,
		outbox.IngestDead: e.Dead,
	} {
		m.border.arrived.WithLabelValues(e.Source, e.Endpoint, state.String()).Add(float64(n))
	}
	m.border.unnamed.WithLabelValues(e.Source, e.Endpoint).Add(float64(e.Unnamed))
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// outcome is the label of the run's new state.
func outcome(e event.RunFailed) string {
	if e.Final {
		return "dead"
	}
	return "failed"
}

// kind returns the label of a kind without a handled message: the kind, or "other" if it is not a valid name or if half
// of the labels are in use.
func (m *Metrics) kind(kind string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.kinds[kind]; known {
		return kind
	}
	if saga.CheckName(kind) != nil || len(m.kinds) >= m.options.Kinds || m.never >= max(1, m.options.Kinds/2) {
		return other
	}
	m.kinds[kind] = false
	m.never++
	return kind
}

// handledKind returns the label of a kind that a program handles.
func (m *Metrics) handledKind(kind string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	handled, known := m.kinds[kind]
	switch {
	case handled:
		return kind
	case known:
		m.never--
	case saga.CheckName(kind) != nil || len(m.kinds) >= m.options.Kinds:
		return other
	}
	m.kinds[kind] = true
	return kind
}

const other = "other"

// Watch adds the queues of a schema to the collected metrics, in place of an earlier schema. If several processes watch
// the same queues, each reads them. Watch is safe for concurrent use.
func (m *Metrics) Watch(o *operate.Operator) { m.queues.watch(o) }

func (m *Metrics) collectors() []prometheus.Collector {
	s, b, r := &m.messages, &m.batch, &m.relay
	return []prometheus.Collector{
		s.handled, s.failed, s.retried, s.dead, s.runsFailed, s.discarded, s.conflicts, s.lost, s.processing,
		s.critical,
		b.ended, b.size, b.took, r.messages, r.bytes, r.lag, r.forward, r.holding,
		m.border.arrived, m.border.unnamed, m.endpoint.slow, m.endpoint.paused, m.queues, m.schedule, m.vitals,
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector. It may read the database, for at most Options.QueueTimeout each for the
// queues, the schedule and the vitals.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}
