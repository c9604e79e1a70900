package eddaprom

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/prometheus/client_golang/prometheus"
)

// queues collects the depths of the queues of a schema. They are read at a scrape.
type queues struct {
	every, timeout         time.Duration
	ready, delayed, oldest *prometheus.Desc
	claimed, parked, left  *prometheus.Desc
	errors                 prometheus.Counter

	mu       sync.Mutex // guards the fields below, also while the queues are read: a second scrape waits
	operator *operate.Operator
	found    []operate.QueueInfo
	lefts    map[string]int // functions that do not return, by endpoint
	read     time.Time
}

func newQueues(o Options) *queues {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "queue", name), help, []string{"endpoint"}, nil)
	}
	return &queues{
		every: o.QueueEvery, timeout: o.QueueTimeout,
		ready: desc("ready", "Messages that are due, also messages that a worker is handling; an estimate "+
			"beyond 100,000."),
		delayed: desc("delayed", "Messages that are due later: delays, timeouts and retries; an estimate "+
			"beyond 100,000."),
		claimed: desc("claimed", "Messages that a leased endpoint is handling."),
		parked: desc("parked", "Messages of an ordered endpoint that wait behind others of their key; counted up "+
			"to 100,000."),
		oldest: desc("oldest_due_seconds", "How long the first due message has been due; 0 without one."),
		left: desc("functions_left", "Functions of the program that do not return, in all running processes: a new "+
			"worker replaces the worker that called it."),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Namespace: o.Namespace, Name: "queue_read_errors_total",
			Help: "Scrapes that could not read the queues."}),
	}
}

func (q *queues) watch(o *operate.Operator) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.operator, q.read = o, time.Time{}
}

// Describe implements prometheus.Collector.
func (q *queues) Describe(to chan<- *prometheus.Desc) {
	to <- q.ready
	to <- q.delayed
	to <- q.claimed
	to <- q.parked
	to <- q.oldest
	to <- q.left
	q.errors.Describe(to)
}

// Collect implements prometheus.Collector.
func (q *queues) Collect(to chan<- prometheus.Metric) {
	found, left := q.now()
	for _, info := range found {
		gauge := func(desc *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, info.Endpoint)
		}
		gauge(q.ready, float64(info.Ready))
		gauge(q.delayed, float64(info.Delayed))
		gauge(q.claimed, float64(info.Claimed))
		gauge(q.parked, float64(info.Parked))
		gauge(q.oldest, info.Lag.Seconds())
		gauge(q.left, float64(left[info.Endpoint]))
	}
	q.errors.Collect(to)
}

// now reads the queues if the last read is older than QueueEvery. After an error it returns nil, because an old number
// would look like a new one.
func (q *queues) now() ([]operate.QueueInfo, map[string]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.operator == nil || time.Since(q.read) < q.every {
		return q.found, q.lefts
	}
	//nolint:forbidigo // a scrape has no context to hand on
	ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
	defer cancel()
	found, err := q.operator.Queues().List(ctx)
	if err == nil {
		q.lefts, err = lefts(ctx, q.operator)
	}
	if err != nil {
		q.errors.Inc()
		found = nil
	}
	q.found, q.read = found, time.Now()
	return found, q.lefts
}

func lefts(ctx context.Context, o *operate.Operator) (map[string]int, error) {
	processes, err := o.History().Processes(ctx)
	all := map[string]int{}
	for _, p := range processes {
		for n, endpoint := range p.Endpoints {
			if p.Lives {
				all[endpoint] += p.Left[n]
			}
		}
	}
	return all, err
}
