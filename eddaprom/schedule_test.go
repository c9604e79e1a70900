package eddaprom_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// plan is a Scheduled for tests.
type plan struct {
	leases []scheduler.Health
	depth  scheduler.Depth
	err    error
	read   int
}

func (p *plan) Leases() []scheduler.Health { return p.leases }
func (p *plan) Depth(context.Context) (scheduler.Depth, error) {
	p.read++
	return p.depth, p.err
}

func TestMetricsTellOfTheSchedule(t *testing.T) {
	t.Parallel()
	m, all := eddaprom.New(eddaprom.Options{QueueEvery: time.Hour}), prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	p := &plan{
		depth: scheduler.Depth{Late: 2 * time.Second, Behind: time.Second, Waiting: 1, Queued: 2, Active: 3, Dead: 4,
			TimedOut: 5, Lost: 6, Skipped: 7, Orphaned: 8},
		leases: []scheduler.Health{
			{Lease: "scheduler", Epoch: 7, Acquired: 3, Released: 1, Lost: 2},
			// it is over
			{Lease: "singleton/rates", Holding: true, Epoch: 9, TrustedUntil: time.Now().Add(-time.Second), Acquired: 1,
				Swept: scheduler.Swept{Every: time.Minute, Took: 15 * time.Second}},
		},
	}
	m.WatchScheduler(p)
	m.WatchLeases(p) // a second time changes nothing
	expect := func(text string) {
		t.Helper()
		if err := testutil.GatherAndCompare(all, strings.NewReader(text), "edda_lease_holder", "edda_lease_epoch",
			"edda_lease_transitions_total",
			"edda_lease_trust_seconds", "edda_lease_sweep_ratio", "edda_schedule_late_seconds",
			"edda_schedule_behind_seconds", "edda_schedule_runs", "edda_schedule_manifests",
			"edda_schedule_read_errors_total"); err != nil {
			t.Error(err)
		}
	}
	const leases = `
# HELP edda_lease_epoch The newest term of the lease that this process has held or read.
# TYPE edda_lease_epoch gauge
edda_lease_epoch{lease="scheduler"} 7
edda_lease_epoch{lease="singleton/rates"} 9
# HELP edda_lease_holder 1 while this process holds the lease.
# TYPE edda_lease_holder gauge
edda_lease_holder{lease="scheduler"} 0
edda_lease_holder{lease="singleton/rates"} 1
# HELP edda_lease_sweep_ratio How long the last sweep took, as a part of its interval.
# TYPE edda_lease_sweep_ratio gauge
edda_lease_sweep_ratio{lease="singleton/rates"} 0.25
# HELP edda_lease_transitions_total Terms of this process that began, and that ended in order or otherwise.
# TYPE edda_lease_transitions_total counter
edda_lease_transitions_total{lease="scheduler",to="acquired"} 3
edda_lease_transitions_total{lease="scheduler",to="lost"} 2
edda_lease_transitions_total{lease="scheduler",to="released"} 1
edda_lease_transitions_total{lease="singleton/rates",to="acquired"} 1
edda_lease_transitions_total{lease="singleton/rates",to="lost"} 0
edda_lease_transitions_total{lease="singleton/rates",to="released"} 0
# HELP edda_lease_trust_seconds How long this process may trust its term without a further renewal; 0 without a term.
# TYPE edda_lease_trust_seconds gauge
edda_lease_trust_seconds{lease="scheduler"} 0
edda_lease_trust_seconds{lease="singleton/rates"} 0
`
	const errorsRead = `
# HELP edda_schedule_read_errors_total Scrapes that could not read the waiting runs and manifests.
# TYPE edda_schedule_read_errors_total counter
edda_schedule_read_errors_total `
	const depth = `
# HELP edda_schedule_behind_seconds How long a queued run has waited to be dispatched; 0 when no run is queued.
# TYPE edda_schedule_behind_seconds gauge
edda_schedule_behind_seconds 1
# HELP edda_schedule_late_seconds How long the first due manifest has waited to be evaluated; 0 without a due manifest.
# TYPE edda_schedule_late_seconds gauge
edda_schedule_late_seconds 2
# HELP edda_schedule_manifests Manifests that skipped due times, or became orphans, within an hour.
# TYPE edda_schedule_manifests gauge
edda_schedule_manifests{state="orphan"} 8
edda_schedule_manifests{state="skipped"} 7
# HELP edda_schedule_runs Runs that have not ended, and runs that were timed out or lost within an hour, by state.
# TYPE edda_schedule_runs gauge
edda_schedule_runs{state="active"} 3
edda_schedule_runs{state="dead"} 4
edda_schedule_runs{state="lost"} 6
edda_schedule_runs{state="queued"} 2
edda_schedule_runs{state="timed_out"} 5
edda_schedule_runs{state="waiting"} 1
`
	expect(leases + depth + errorsRead + "0\n")
	expect(leases + depth + errorsRead + "0\n")
	if p.read != 1 {
		t.Errorf("the database was read %d times within an hour", p.read)
	}
	// While the database is away its metrics are missing, and no others.
	p.err = errors.New("away")
	m.WatchScheduler(p)
	expect(leases + errorsRead + "1\n")
}

// A Singleton of a real database, from its standby to its end.
func TestMetricsFollowASingleton(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	began := make(chan struct{})
	s, err := scheduler.NewSingleton(pool, "rates", func(term scheduler.Term) error {
		close(began)
		<-term.Done()
		return nil
	}, scheduler.SingletonOptions{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m, all := eddaprom.New(eddaprom.Options{}), prometheus.NewPedanticRegistry()
	m.WatchLeases(s)
	all.MustRegister(m)
	value := func(name string) float64 {
		t.Helper()
		families, err := all.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatalf("there is no %s", name)
		return 0
	}
	if value("edda_lease_holder") != 0 || value("edda_lease_epoch") != 0 {
		t.Error("it holds what it never bid for")
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	<-began
	if trust := value("edda_lease_trust_seconds"); value("edda_lease_holder") != 1 || value("edda_lease_epoch") != 1 ||
		trust < 10 || trust > 29 {
		t.Errorf("the holder trusts its term for %v s", trust)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if value("edda_lease_holder") != 0 || value("edda_lease_trust_seconds") != 0 {
		t.Error("it holds the lease after its end")
	}
}

func TestDocListsEveryMetricOfTheSchedule(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	m, descs := eddaprom.New(eddaprom.Options{}), make(chan *prometheus.Desc, 1000)
	m.Describe(descs)
	close(descs)
	for d := range descs {
		name := regexp.MustCompile(`fqName: "edda_((?:lease|schedule)_[a-z_]+)"`).FindStringSubmatch(d.String())
		if name != nil && !strings.Contains(string(doc), name[1]) {
			t.Errorf("doc.go does not list %s", name[1])
		}
	}
}

// The trust of a holder is the time that is left of its term.
func TestTrustIsTheTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	m, all := eddaprom.New(eddaprom.Options{}), prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	m.WatchLeases(&plan{leases: []scheduler.Health{{Lease: "scheduler", Holding: true,
		TrustedUntil: time.Now().Add(time.Hour)}}})
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "edda_lease_trust_seconds" {
			if left := f.GetMetric()[0].GetGauge().GetValue(); left < 3000 || left > 3600 {
				t.Errorf("%v seconds are left, want about an hour", left)
			}
			return
		}
	}
	t.Error("there is no edda_lease_trust_seconds")
}
