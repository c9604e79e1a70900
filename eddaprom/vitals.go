package eddaprom

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/operate/vitals"
	"github.com/prometheus/client_golang/prometheus"
)

// Examined has vitals to export. *vitals.Reader implements it.
type Examined interface {
	Read(ctx context.Context) (vitals.Report, error)
}

// examined collects the vitals of a database. They are read at a scrape.
type examined struct {
	every, timeout                               time.Duration
	level, seconds, transactions, dead           *prometheus.Desc
	used, allowed, written, kept, freeze, tables *prometheus.Desc
	errors                                       prometheus.Counter

	mu    sync.Mutex // guards the fields below, also while the database is read: a second scrape waits
	from  Examined
	found *vitals.Report
	read  time.Time
}

func newExamined(o Options) *examined {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "vital", name), help, labels, nil)
	}
	return &examined{
		every: o.QueueEvery, timeout: o.QueueTimeout,
		level: desc("level", "The level of a vital of the database: 0 ok, 1 warn, 2 bad.", "vital"),
		seconds: desc("snapshot_seconds", "How long the oldest transaction that keeps dead rows has been open, as "+
			"far as the role can read it; 0 without one."),
		transactions: desc("snapshot_transactions", "How many transactions have begun since the oldest snapshot that "+
			"keeps dead rows."),
		dead: desc("dead_rows", "Dead rows of the tables with the most, as Postgres estimates them.",
			"table", "endpoint"),
		used:    desc("connections_used", "Connections of clients to the server."),
		allowed: desc("connections_allowed", "Connections that the server allows to roles without superuser."),
		written: desc("wal_bytes_per_second", "Write-ahead log that the server wrote between the last two readings."),
		kept:    desc("slot_bytes", "Write-ahead log that a replication slot keeps.", "slot"),
		freeze: desc("freeze_ratio", "The age of the oldest transaction id or multixact, divided by the age when "+
			"autovacuum freezes rows."),
		tables: desc("tables", "Tables of the schema."),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Namespace: o.Namespace, Name: "vital_read_errors_total",
			Help: "Scrapes that could not read the vitals of the database."}),
	}
}

// WatchVitals adds the vitals of a database to the collected metrics, in place of an earlier database. If several
// processes watch one database, each reads it. It is safe for concurrent use.
func (m *Metrics) WatchVitals(from Examined) {
	m.vitals.mu.Lock()
	defer m.vitals.mu.Unlock()
	m.vitals.from, m.vitals.read = from, time.Time{}
}

// Describe implements prometheus.Collector.
func (e *examined) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{e.level, e.seconds, e.transactions, e.dead, e.used, e.allowed, e.written,
		e.kept, e.freeze, e.tables} {
		to <- d
	}
	e.errors.Describe(to)
}

// Collect implements prometheus.Collector.
func (e *examined) Collect(to chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.from == nil {
		return
	}
	if r := e.now(); r != nil {
		e.collect(r, func(desc *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		})
	}
	e.errors.Collect(to)
}

func (e *examined) collect(r *vitals.Report, gauge func(desc *prometheus.Desc, value float64, labels ...string)) {
	seen := map[string]bool{}
	for _, v := range r.Vitals { // the worst of a name comes first
		if !seen[v.Name] {
			seen[v.Name] = true
			gauge(e.level, float64(v.Level), v.Name)
		}
	}
	held, transactions := 0.0, int64(0)
	for _, h := range r.Holders {
		if !h.Catalogs {
			held, transactions = max(held, h.Held.Seconds()), max(transactions, h.Transactions)
		}
	}
	gauge(e.seconds, held)
	gauge(e.transactions, float64(transactions))
	for _, t := range r.Tables {
		gauge(e.dead, float64(t.Dead), t.Name, t.Endpoint)
	}
	for _, s := range r.Slots {
		gauge(e.kept, float64(s.Bytes), s.Slot)
	}
	gauge(e.used, float64(r.Server.Used))
	gauge(e.allowed, float64(r.Server.Allowed))
	gauge(e.freeze, r.Server.FreezeRatio)
	gauge(e.tables, float64(r.Server.Tables))
	if r.Server.WALPerSecond >= 0 {
		gauge(e.written, r.Server.WALPerSecond)
	}
}

// now reads the vitals if the last read is older than QueueEvery. After an error it returns nil, because an old number
// would look like a new one.
func (e *examined) now() *vitals.Report {
	if time.Since(e.read) < e.every {
		return e.found
	}
	//nolint:forbidigo // a scrape has no context to hand on
	ctx, cancel := context.WithTimeout(context.Background(), e.timeout)
	defer cancel()
	r, err := e.from.Read(ctx)
	e.found, e.read = &r, time.Now()
	if err != nil {
		e.errors.Inc()
		e.found = nil
	}
	return e.found
}
