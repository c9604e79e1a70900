package eddaprom_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type parcel struct{ Fate string }

func (parcel) Kind() string { return "parcel" }

var errLost = errors.New("the van is gone")

func deliver(ctx *bus.Context, _ pgx.Tx, m parcel) error {
	switch {
	case m.Fate == "refused":
		return saga.Discard("nobody at home")
	case m.Fate == "lost", m.Fate == "late" && ctx.Info().Attempt == 1:
		return errLost
	}
	return nil
}

// lab is a measured bus, in a schema of its own.
type lab struct {
	schema   string
	operator *operate.Operator
	bus      *bus.Bus
	metrics  *eddaprom.Metrics
	all      *prometheus.Registry
	done     chan struct{} // receives a value for every batch that committed
}

func newLab(t *testing.T, pool *pgxpool.Pool, o eddaprom.Options) lab {
	t.Helper()
	schema := pgdev.Schema(t)
	l := lab{schema: schema, metrics: eddaprom.New(o), all: prometheus.NewPedanticRegistry(),
		done: make(chan struct{}, 100)}
	pgtest.Migrate(t, pool, schema)
	b, err := bus.New(pool, bus.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler),
		Events: func(e event.Event) {
			l.metrics.Observe(e)
			if _, ok := e.(event.BatchDone); ok {
				l.done <- struct{}{}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	l.bus = b
	if l.operator, err = operate.New(pool, operate.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	l.metrics.Watch(l.operator)
	l.all.MustRegister(l.metrics)
	return l
}

func (l lab) endpoint(t *testing.T) *bus.Endpoint {
	t.Helper()
	policy := func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt < 2 {
			return recoverability.RetryNow()
		}
		return recoverability.DeadLetter()
	}
	e, err := bus.NewEndpoint(l.bus, "van", bus.EndpointOptions{Concurrency: 1, Policy: policy}, bus.HandleTx(deliver))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// expect compares the named metrics with text, in Prometheus's own format.
func (l lab) expect(t *testing.T, text string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(l.all, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

func TestMetricsFollowTheMessages(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	l := newLab(t, pool, eddaprom.Options{QueueEvery: time.Nanosecond})
	e := l.endpoint(t)
	for _, fate := range []string{"fine", "fine", "refused", "lost", "late"} {
		if _, err := l.bus.Send(t.Context(), parcel{Fate: fate}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.bus.Send(t.Context(), parcel{Fate: "fine"}, saga.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, pool, `INSERT INTO `+l.schema+`.session (id, host, pid, queues, locked, left_calls, expires)
		SELECT gen_random_uuid(), 'h', n, '{1}', false, ARRAY[n], now() + (2 - n) * interval '1 hour'
		FROM generate_series(0, 2) n`) // the last does not renew its row
	l.expect(t, `
# HELP edda_queue_functions_left Functions of the program that do not return, in all running processes: a new `+
		`worker replaces the worker that called it.
# TYPE edda_queue_functions_left gauge
edda_queue_functions_left{endpoint="van"} 1
# HELP edda_queue_delayed Messages that are due later: delays, timeouts and retries; an estimate beyond 100,000.
# TYPE edda_queue_delayed gauge
edda_queue_delayed{endpoint="van"} 1
# HELP edda_queue_ready Messages that are due, also messages that a worker is handling; an estimate beyond 100,000.
# TYPE edda_queue_ready gauge
edda_queue_ready{endpoint="van"} 5
`, "edda_queue_ready", "edda_queue_delayed", "edda_queue_functions_left")

	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	for l.ready(t) > 0 {
		<-l.done
	}
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	l.expect(t, `
# HELP edda_attempts_failed_total Attempts that ended with an error.
# TYPE edda_attempts_failed_total counter
edda_attempts_failed_total{endpoint="van",kind="parcel"} 3
# HELP edda_messages_dead_lettered_total Messages that failed for good and became dead letters.
# TYPE edda_messages_dead_lettered_total counter
edda_messages_dead_lettered_total{endpoint="van",kind="parcel"} 1
# HELP edda_messages_discarded_total Messages consumed without effect, with a reason kept.
# TYPE edda_messages_discarded_total counter
edda_messages_discarded_total{endpoint="van",kind="parcel"} 1
# HELP edda_messages_handled_total Messages whose effects are committed.
# TYPE edda_messages_handled_total counter
edda_messages_handled_total{endpoint="van",kind="parcel",saga=""} 3
`, "edda_attempts_failed_total", "edda_messages_dead_lettered_total", "edda_messages_discarded_total",
		"edda_messages_handled_total")
	for _, name := range []string{"edda_batch_messages", "edda_batch_seconds", "edda_processing_seconds",
		"edda_critical_seconds"} {
		if n, err := testutil.GatherAndCount(l.all, name); err != nil || n != 1 {
			t.Errorf("%s has %d series (%v), want 1", name, n, err)
		}
	}
}

// The time of a handler and the time of its message are separate metrics.
func TestHandlersTimeStandsBesideTheCriticalOne(t *testing.T) {
	t.Parallel()
	l := newLab(t, pgdev.Pool(t), eddaprom.Options{})
	l.metrics.Observe(event.Handled{Endpoint: "van", Step: 2 * time.Second, Critical: time.Hour})
	families, err := l.all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetHistogram().GetSampleSum()
		}
	}
	if sums["edda_processing_seconds"] != 2 || sums["edda_critical_seconds"] != 3600 {
		t.Errorf("the handler took %v s, its message %v s; want 2 and 3600", sums["edda_processing_seconds"],
			sums["edda_critical_seconds"])
	}
}

func (l lab) ready(t *testing.T) int64 {
	t.Helper()
	infos, err := l.operator.Queues().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return infos[0].Ready
}

// A label for each kind would fill the memory of Prometheus.
func TestKindsAreBounded(t *testing.T) {
	t.Parallel()
	m := eddaprom.New(eddaprom.Options{Kinds: 2})
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	for _, kind := range []string{"a", "b", "c", "d", "a"} {
		m.Observe(event.Handled{Endpoint: "van", Info: saga.Info{Kind: kind}})
	}
	if err := testutil.GatherAndCompare(all, strings.NewReader(`
# HELP edda_messages_handled_total Messages whose effects are committed.
# TYPE edda_messages_handled_total counter
edda_messages_handled_total{endpoint="van",kind="a",saga=""} 2
edda_messages_handled_total{endpoint="van",kind="b",saga=""} 1
edda_messages_handled_total{endpoint="van",kind="other",saga=""} 2
`), "edda_messages_handled_total"); err != nil {
		t.Error(err)
	}
}

// A writer to a topic can invent kinds: they take no label from handled kinds, and a kind that is no valid name never
// gets a label.
func TestKindsOfStrangersTakeNoLabels(t *testing.T) {
	t.Parallel()
	m := eddaprom.New(eddaprom.Options{Kinds: 100})
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	for n := range 1000 {
		for _, kind := range []string{fmt.Sprintf("invented.%d", n), fmt.Sprintf("no name %d", n),
			strings.Repeat("x", 64+n), "order.pl\xe4ce"} {
			m.Observe(event.DeadLettered{Endpoint: "van", Info: saga.Info{Kind: kind}})
		}
	}
	for n := range 50 {
		m.Observe(event.Handled{Endpoint: "van", Info: saga.Info{Kind: fmt.Sprintf("order.%d", n)}})
		m.Observe(event.Retried{Endpoint: "van", Info: saga.Info{Kind: fmt.Sprintf("order.%d", n)}})
	}
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]map[string]bool{}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == "kind" {
					if kinds[f.GetName()] == nil {
						kinds[f.GetName()] = map[string]bool{}
					}
					kinds[f.GetName()][label.GetValue()] = true
				}
			}
		}
	}
	for name, want := range map[string]int{"edda_messages_handled_total": 50, "edda_messages_dead_lettered_total": 51,
		"edda_attempts_retried_total": 50} {
		if len(kinds[name]) != want {
			t.Errorf("%s has %d kinds, want %d", name, len(kinds[name]), want)
		}
		for kind := range kinds[name] {
			if err := saga.CheckName(kind); err != nil {
				t.Errorf("%s has the kind %.80q: %v", name, kind, err)
			}
		}
	}
	if !kinds["edda_messages_dead_lettered_total"]["other"] || kinds["edda_messages_handled_total"]["other"] {
		t.Error("what is handled is counted as other, or what strangers invent is not")
	}
}

// A scrape while the database is away has the counters, and no gauges of the queues.
func TestScrapeWithoutADatabase(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	l := newLab(t, pool, eddaprom.Options{})
	l.endpoint(t)
	pool.Close()
	l.expect(t, `
# HELP edda_queue_read_errors_total Scrapes that could not read the queues.
# TYPE edda_queue_read_errors_total counter
edda_queue_read_errors_total 1
`, "edda_queue_ready", "edda_queue_read_errors_total")
}

// Every event is counted in a metric, and every metric is in the list of doc.go.
func TestDocListsEveryMetric(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	m := eddaprom.New(eddaprom.Options{})
	for _, e := range []event.Event{
		event.Handled{}, event.Retried{}, event.DeadLettered{}, event.Discarded{}, event.Conflicted{},
		event.BatchDone{},
		event.BatchFailed{},
		event.Relayed{}, event.RelayHeld{}, event.Ingested{},
	} {
		m.Observe(e)
	}
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
		if !strings.Contains(string(doc), f.GetName()) {
			t.Errorf("doc.go does not list %s", f.GetName())
		}
	}
	if !slices.Contains(names, "edda_conflicts_total") || len(names) != 19 {
		t.Errorf("events were counted as %v, want 19 metrics", names)
	}
}

func TestMetricsTellThePaceOfAnEndpoint(t *testing.T) {
	l := newLab(t, pgdev.Pool(t), eddaprom.Options{})
	for _, e := range []event.Event{event.Slowed{Endpoint: "van"}, event.Paused{Endpoint: "van"},
		event.Slowed{Endpoint: "bike"}, event.Recovered{Endpoint: "bike"}, event.Resumed{Endpoint: "bike"}} {
		l.metrics.Observe(e)
	}
	l.expect(t, `
		# HELP edda_endpoint_paused 1 while the endpoint is paused.
		# TYPE edda_endpoint_paused gauge
		edda_endpoint_paused{endpoint="bike"} 0
		edda_endpoint_paused{endpoint="van"} 1
		# HELP edda_endpoint_slow 1 while nothing succeeds, and one message at a time is tried.
		# TYPE edda_endpoint_slow gauge
		edda_endpoint_slow{endpoint="bike"} 0
		edda_endpoint_slow{endpoint="van"} 1
	`, "edda_endpoint_slow", "edda_endpoint_paused")
}

// Failures of runs are counted apart from dead letters, because their messages never become dead letters.
func TestFailedRunsAreCounted(t *testing.T) {
	t.Parallel()
	m := eddaprom.New(eddaprom.Options{})
	for _, final := range []bool{false, false, true} {
		m.Observe(event.RunFailed{Endpoint: "van", Info: saga.Info{Kind: "parcel"}, Err: errLost, Final: final})
	}
	err := testutil.CollectAndCompare(m, strings.NewReader(`
# HELP edda_runs_failed_total Failed attempts of runs; the scheduler sends the run again while there are retries.
# TYPE edda_runs_failed_total counter
edda_runs_failed_total{endpoint="van",kind="parcel",outcome="dead"} 1
edda_runs_failed_total{endpoint="van",kind="parcel",outcome="failed"} 2
`), "edda_runs_failed_total")
	if err != nil {
		t.Error(err)
	}
}
