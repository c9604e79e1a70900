package eddaprom

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/scheduler"
	"github.com/prometheus/client_golang/prometheus"
)

// Leased has leases to export. *scheduler.Singleton implements it; so does *scheduler.Scheduler, with its own lease and
// the leases of its Singletons.
type Leased interface{ Leases() []scheduler.Health }

// Scheduled has a schedule to export. *scheduler.Scheduler implements it.
type Scheduled interface {
	Leased
	Depth(ctx context.Context) (scheduler.Depth, error)
}

// schedule collects the state of leases, which is in memory, and the work that waits for the schedulers, which it reads
// at a scrape.
type schedule struct {
	every, timeout                            time.Duration
	holder, epoch, transitions, trust, sweeps *prometheus.Desc
	late, behind, runs, manifests             *prometheus.Desc
	errors                                    prometheus.Counter

	mu     sync.Mutex // guards the fields below, also while the database is read: a second scrape waits
	leased []Leased
	from   Scheduled
	found  *scheduler.Depth
	read   time.Time
}

func newSchedule(o Options) *schedule {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", name), help, labels, nil)
	}
	return &schedule{
		every: o.QueueEvery, timeout: o.QueueTimeout,
		holder: desc("lease_holder", "1 while this process holds the lease.", "lease"),
		epoch:  desc("lease_epoch", "The newest term of the lease that this process has held or read.", "lease"),
		transitions: desc("lease_transitions_total", "Terms of this process that began, and that ended in order or "+
			"otherwise.", "lease", "to"),
		trust: desc("lease_trust_seconds", "How long this process may trust its term without a further "+
			"renewal; 0 without a term.", "lease"),
		sweeps: desc("lease_sweep_ratio", "How long the last sweep took, as a part of its interval.", "lease"),
		late: desc("schedule_late_seconds", "How long the first due manifest has waited to be evaluated; 0 "+
			"without a due manifest."),
		behind: desc("schedule_behind_seconds", "How long a queued run has waited to be dispatched; 0 when "+
			"no run is queued."),
		runs: desc("schedule_runs", "Runs that have not ended, and runs that were timed out or lost within "+
			"an hour, by state.", "state"),
		manifests: desc("schedule_manifests", "Manifests that skipped due times, or became orphans, within an "+
			"hour.", "state"),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Namespace: o.Namespace, Name: "schedule_read_errors_total",
			Help: "Scrapes that could not read the waiting runs and manifests."}),
	}
}

// WatchLeases adds the leases of l to the collected metrics. It is safe for concurrent use.
func (m *Metrics) WatchLeases(l Leased) {
	m.schedule.mu.Lock()
	defer m.schedule.mu.Unlock()
	m.schedule.leased = append(m.schedule.leased, l)
}

// WatchScheduler adds the work that waits for the schedulers, and the leases of s, to the collected metrics. Each
// process that watches reads the schema. It is safe for concurrent use.
func (m *Metrics) WatchScheduler(s Scheduled) {
	m.WatchLeases(s)
	m.schedule.mu.Lock()
	defer m.schedule.mu.Unlock()
	m.schedule.from, m.schedule.read = s, time.Time{}
}

// Describe implements prometheus.Collector.
func (s *schedule) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.holder, s.epoch, s.transitions, s.trust, s.sweeps, s.late, s.behind,
		s.runs, s.manifests} {
		to <- d
	}
	s.errors.Describe(to)
}

// Collect implements prometheus.Collector.
func (s *schedule) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{} // of two leases with one name only the first is collected
	for _, l := range s.leased {
		for _, h := range l.Leases() {
			if !seen[h.Lease] {
				s.collectLease(h, to)
			}
			seen[h.Lease] = true
		}
	}
	if s.from == nil {
		return
	}
	if d := s.depth(); d != nil {
		to <- prometheus.MustNewConstMetric(s.late, prometheus.GaugeValue, d.Late.Seconds())
		to <- prometheus.MustNewConstMetric(s.behind, prometheus.GaugeValue, d.Behind.Seconds())
		for state, n := range map[string]int64{"waiting": d.Waiting, "queued": d.Queued, "active": d.Active,
			"dead": d.Dead, "timed_out": d.TimedOut, "lost": d.Lost} {
			to <- prometheus.MustNewConstMetric(s.runs, prometheus.GaugeValue, float64(n), state)
		}
		for state, n := range map[string]int64{"skipped": d.Skipped, "orphan": d.Orphaned} {
			to <- prometheus.MustNewConstMetric(s.manifests, prometheus.GaugeValue, float64(n), state)
		}
	}
	s.errors.Collect(to)
}

func (s *schedule) collectLease(h scheduler.Health, to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, h.Lease)
	}
	count := func(kind string, n int64) {
		to <- prometheus.MustNewConstMetric(s.transitions, prometheus.CounterValue, float64(n), h.Lease, kind)
	}
	holder, trust := 0.0, 0.0
	if h.Holding {
		holder, trust = 1, max(0, time.Until(h.TrustedUntil).Seconds())
	}
	gauge(s.holder, holder)
	gauge(s.trust, trust)
	gauge(s.epoch, float64(h.Epoch))
	count("acquired", h.Acquired)
	count("released", h.Released)
	count("lost", h.Lost)
	if h.Swept.Every > 0 {
		gauge(s.sweeps, h.Swept.Took.Seconds()/h.Swept.Every.Seconds())
	}
}

// depth reads the schedule if the last read is older than QueueEvery. After an error it returns nil, because an old
// number would look like a new one.
func (s *schedule) depth() *scheduler.Depth {
	if time.Since(s.read) < s.every {
		return s.found
	}
	//nolint:forbidigo // a scrape has no context to hand on
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	d, err := s.from.Depth(ctx)
	s.found, s.read = &d, time.Now()
	if err != nil {
		s.errors.Inc()
		s.found = nil
	}
	return s.found
}
