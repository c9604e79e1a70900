package eddaprom

import (
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/prometheus/client_golang/prometheus"
)

// Options of Metrics. Every zero is a default.
type Options struct {
	Namespace string // the first word of every name; "" is "edda"
	// Kinds is how many kinds get a label of their own; 0 or less is 1,000. Kinds without a handled message get at most
	// half of them.
	Kinds        int
	QueueEvery   time.Duration // how long a reading of the queues, or of the schedule, is shown again; 0 or less is 5 s
	QueueTimeout time.Duration // of one such reading; 0 or less is 5 s
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
	options Options

	handled, failed, retried, dead, discarded *prometheus.CounterVec
	conflicts, batches, lost, runsFailed      *prometheus.CounterVec
	relayed, relayedBytes, arrived, unnamed   *prometheus.CounterVec
	size, took, processing, critical          *prometheus.HistogramVec
	relayLag, forward                         *prometheus.HistogramVec
	slow, paused, relaying                    *prometheus.GaugeVec
	queues                                    *queues
	schedule                                  *schedule

	mu    sync.Mutex      // guards what follows
	kinds map[string]bool // that have a label of their own; true where one was handled
	never int             // of kinds, those of which none was handled
}

// New returns Metrics with all counters at zero. Register it with a prometheus.Registerer, and use Observe as
// bus.Options.Events.
func New(o Options) *Metrics {
	o = o.withDefaults()
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: o.Namespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: o.Namespace, Name: name, Help: help,
			Buckets: buckets}, []string{"endpoint"})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: o.Namespace, Name: name, Help: help},
			[]string{"endpoint"})
	}
	return &Metrics{
		slow:     gauge("endpoint_slow", "1 while nothing succeeds, and one message at a time is tried."),
		paused:   gauge("endpoint_paused", "1 while the endpoint is paused."),
		relaying: gauge("relay_holding", "1 while this process is the one that relays."),
		options:  o, kinds: map[string]bool{}, queues: newQueues(o), schedule: newSchedule(o),
		handled: counter("messages_handled_total", "Messages whose effects are committed.", "endpoint", "saga",
			"kind"),
		failed:  counter("attempts_failed_total", "Attempts that ended with an error.", "endpoint", "kind"),
		retried: counter("attempts_retried_total", "Failed attempts that another followed.", "endpoint", "kind"),
		dead: counter("messages_dead_lettered_total", "Messages given up and kept as dead letters.", "endpoint",
			"kind"),
		runsFailed: counter("runs_failed_total", "Attempts of a manifest's runs that were given up: failed ones "+
			"are sent again while there are retries.", "endpoint", "kind", "outcome"),
		discarded: counter("messages_discarded_total", "Messages consumed without effect, with a reason kept.",
			"endpoint", "kind"),
		conflicts: counter("conflicts_total", "Messages whose instance somebody else changed first.", "endpoint",
			"saga"),
		lost: counter("claims_lost_total", "Messages of leased endpoints that may be in other hands.",
			"endpoint"),
		relayed: counter("messages_relayed_total", "Messages that a relay gave to the other side and deleted.",
			"endpoint"),
		relayedBytes: counter("relayed_bytes_total", "Bytes of the bodies of relayed messages.", "endpoint"),
		arrived: counter("messages_arrived_total", "Messages from other systems, by what became of them.",
			"source", "endpoint", "state"),
		unnamed: counter("arrived_unnamed_total", "Messages from other systems that had no id, so that a "+
			"second delivery is another message.", "source", "endpoint"),
		relayLag: histogram("relay_lag_seconds", "Of the message of a relayed batch that waited longest: from when "+
			"it was sent, or due, to the commit.",
			prometheus.ExponentialBuckets(0.001, 2.5, 14)),
		forward: histogram("relay_forward_seconds", "The time that the other side took for one batch.",
			prometheus.ExponentialBuckets(0.001, 2, 14)),
		batches: counter("batches_total", "Transactions that took messages.", "endpoint", "result"),
		size: histogram("batch_messages", "Messages that one transaction took.",
			[]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}),
		took: histogram("batch_seconds", "From the take of a batch to its commit.",
			prometheus.ExponentialBuckets(0.001, 2, 14)),
		processing: histogram("processing_seconds", "The handler's own time for one message.",
			prometheus.ExponentialBuckets(0.00001, 4, 11)),
		critical: histogram("critical_seconds", "From when a message was sent, or due, to the commit of its effects.",
			prometheus.ExponentialBuckets(0.001, 2.5, 14)),
	}
}

// Observe counts one event. Use it as bus.Options.Events. It is safe for concurrent use.
func (m *Metrics) Observe(e bus.Event) {
	switch e := e.(type) {
	case bus.Handled:
		m.handled.WithLabelValues(e.Endpoint, e.Saga, m.handledKind(e.Info.Kind)).Inc()
		m.processing.WithLabelValues(e.Endpoint).Observe(e.Step.Seconds())
		m.critical.WithLabelValues(e.Endpoint).Observe(e.Critical.Seconds())
	case bus.Retried:
		m.failed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
		m.retried.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
	case bus.DeadLettered:
		m.failed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
		m.dead.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
	case bus.RunFailed:
		m.failed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
		m.runsFailed.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind), outcome(e)).Inc()
	case bus.Discarded:
		m.discarded.WithLabelValues(e.Endpoint, m.kind(e.Info.Kind)).Inc()
	case bus.Conflicted:
		m.conflicts.WithLabelValues(e.Endpoint, e.Saga).Inc()
	case bus.ClaimLost:
		m.lost.WithLabelValues(e.Endpoint).Inc()
	case bus.BatchDone:
		m.batches.WithLabelValues(e.Endpoint, "committed").Inc()
		m.size.WithLabelValues(e.Endpoint).Observe(float64(e.Taken))
		m.took.WithLabelValues(e.Endpoint).Observe(e.Took.Seconds())
	case bus.Slowed:
		m.slow.WithLabelValues(e.Endpoint).Set(1)
	case bus.Recovered:
		m.slow.WithLabelValues(e.Endpoint).Set(0)
	case bus.Paused:
		m.paused.WithLabelValues(e.Endpoint).Set(1)
	case bus.Resumed:
		m.paused.WithLabelValues(e.Endpoint).Set(0)
	case bus.Relayed:
		m.relayed.WithLabelValues(e.Endpoint).Add(float64(e.Messages))
		m.relayedBytes.WithLabelValues(e.Endpoint).Add(float64(e.Bytes))
		m.relayLag.WithLabelValues(e.Endpoint).Observe(e.Lag.Seconds())
		m.forward.WithLabelValues(e.Endpoint).Observe(e.Forward.Seconds())
	case bus.RelayHeld:
		m.relaying.WithLabelValues(e.Endpoint).Set(one(e.Holding))
	case bus.Arrivals:
		m.arrivals(e)
	case bus.BatchFailed:
		m.batches.WithLabelValues(e.Endpoint, "rolled_back").Inc()
	}
}

// arrivals counts arrived messages. It creates every state at the first call, so that its rate is 0 and not absent.
func (m *Metrics) arrivals(e bus.Arrivals) {
	for state, n := range map[bus.ArrivedState]int{
		bus.Accepted: e.Accepted, bus.Repeated: e.Repeated, bus.Unwanted: e.Unwanted, bus.ArrivedDead: e.Dead,
	} {
		m.arrived.WithLabelValues(e.Source, e.Endpoint, state.String()).Add(float64(n))
	}
	m.unnamed.WithLabelValues(e.Source, e.Endpoint).Add(float64(e.Unnamed))
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// outcome is the label of the run's new state.
func outcome(e bus.RunFailed) string {
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

// Watch adds the queues of b to the collected metrics. Each process that watches reads them from the database.
func (m *Metrics) Watch(b *bus.Bus) { m.queues.watch(b) }

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.handled, m.failed, m.retried, m.dead, m.runsFailed, m.discarded, m.conflicts,
		m.lost, m.batches, m.slow, m.paused,
		m.relayed, m.relayedBytes, m.relayLag, m.forward, m.relaying, m.arrived, m.unnamed,
		m.size, m.took, m.processing, m.critical, m.queues, m.schedule}
}

// Describe is part of prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect is part of prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}
