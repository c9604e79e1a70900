package eddaprom_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// patient is an Examined for tests.
type patient struct {
	report vitals.Report
	err    error
	read   int
}

func (p *patient) Read(context.Context) (vitals.Report, error) {
	p.read++
	return p.report, p.err
}

func TestMetricsTellOfVitals(t *testing.T) {
	t.Parallel()
	m, all := eddaprom.New(eddaprom.Options{QueueEvery: time.Hour}), prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	p := &patient{report: vitals.Report{
		Vitals: []vitals.Vital{
			{Name: vitals.Snapshot, Level: vitals.Bad, Subject: "session 1"},
			{Name: vitals.Setting, Level: vitals.Warn, Subject: "synchronous_commit"},
			{Name: vitals.Snapshot, Level: vitals.Warn, Subject: "session 2"}, {Name: vitals.Freeze},
		},
		Holders: []vitals.Holder{{Held: time.Minute, Transactions: 900}, {Held: 2 * time.Minute, Transactions: 7},
			{Catalogs: true, Held: time.Hour, Transactions: 1e6}},
		Tables: []vitals.Table{{Name: "queue_1", Endpoint: "van", Dead: 12}, {Name: "saga", Dead: 3}},
		Slots:  []vitals.KeptWAL{{Slot: "away", Bytes: 1 << 20}},
		Server: vitals.Server{Used: 41, Allowed: 97, WALPerSecond: 2048, Tables: 50, FreezeRatio: 0.5},
	}}
	m.WatchVitals(p)
	names := []string{"edda_vital_level", "edda_vital_snapshot_seconds", "edda_vital_snapshot_transactions",
		"edda_vital_dead_rows", "edda_vital_connections_used", "edda_vital_connections_allowed",
		"edda_vital_wal_bytes_per_second", "edda_vital_slot_bytes", "edda_vital_freeze_ratio", "edda_vital_tables",
		"edda_vital_read_errors_total"}
	expect := func(text string) {
		t.Helper()
		if err := testutil.GatherAndCompare(all, strings.NewReader(text), names...); err != nil {
			t.Error(err)
		}
	}
	const read = `
# HELP edda_vital_connections_allowed Connections that the server allows to roles without superuser.
# TYPE edda_vital_connections_allowed gauge
edda_vital_connections_allowed 97
# HELP edda_vital_connections_used Connections of clients to the server.
# TYPE edda_vital_connections_used gauge
edda_vital_connections_used 41
# HELP edda_vital_dead_rows Dead rows of the tables with the most, as Postgres estimates them.
# TYPE edda_vital_dead_rows gauge
edda_vital_dead_rows{endpoint="",table="saga"} 3
edda_vital_dead_rows{endpoint="van",table="queue_1"} 12
# HELP edda_vital_freeze_ratio The age of the oldest transaction id or multixact, divided by the age when ` +
		`autovacuum freezes rows.
# TYPE edda_vital_freeze_ratio gauge
edda_vital_freeze_ratio 0.5
# HELP edda_vital_level The level of a vital of the database: 0 ok, 1 warn, 2 bad.
# TYPE edda_vital_level gauge
edda_vital_level{vital="freeze"} 0
edda_vital_level{vital="setting"} 1
edda_vital_level{vital="snapshot"} 2
# HELP edda_vital_slot_bytes Write-ahead log that a replication slot keeps.
# TYPE edda_vital_slot_bytes gauge
edda_vital_slot_bytes{slot="away"} 1.048576e+06
# HELP edda_vital_snapshot_seconds How long the oldest transaction that keeps dead rows has been open, as far as the ` +
		`role can read it; 0 without one.
# TYPE edda_vital_snapshot_seconds gauge
edda_vital_snapshot_seconds 120
# HELP edda_vital_snapshot_transactions How many transactions have begun since the oldest snapshot that keeps dead ` +
		`rows.
# TYPE edda_vital_snapshot_transactions gauge
edda_vital_snapshot_transactions 900
# HELP edda_vital_tables Tables of the schema.
# TYPE edda_vital_tables gauge
edda_vital_tables 50
# HELP edda_vital_wal_bytes_per_second Write-ahead log that the server wrote between the last two readings.
# TYPE edda_vital_wal_bytes_per_second gauge
edda_vital_wal_bytes_per_second 2048
`
	const errorsRead = `
# HELP edda_vital_read_errors_total Scrapes that could not read the vitals of the database.
# TYPE edda_vital_read_errors_total counter
edda_vital_read_errors_total `
	expect(read + errorsRead + "0\n")
	expect(read + errorsRead + "0\n")
	if p.read != 1 {
		t.Errorf("the database was read %d times within an hour", p.read)
	}
	p.err = errors.New("away")
	m.WatchVitals(p)
	expect(errorsRead + "1\n")
}

// A reader of a real database has no rate at its first read.
func TestMetricsReadADatabase(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	r, err := vitals.New(pool, vitals.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	m, all := eddaprom.New(eddaprom.Options{}), prometheus.NewPedanticRegistry()
	all.MustRegister(m)
	m.WatchVitals(r)
	for name, want := range map[string]int{"edda_vital_dead_rows": 20, "edda_vital_connections_used": 1,
		"edda_vital_level": 8, "edda_vital_wal_bytes_per_second": 0, "edda_vital_tables": 1} {
		if n, err := testutil.GatherAndCount(all, name); err != nil || n != want {
			t.Errorf("%s has %d series (%v), want %d", name, n, err, want)
		}
	}
}

func TestDocListsEveryVital(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for name := range described() {
		if strings.HasPrefix(name, "edda_vital_") && !strings.Contains(string(doc), "\t"+name+" ") {
			t.Errorf("doc.go does not list %s", name)
		}
	}
}

var (
	descName   = regexp.MustCompile(`fqName: "([a-z_]+)"`)
	descLabels = regexp.MustCompile(`variableLabels: \{([a-z_,]*)\}`)
)

// described returns the metrics that eddaprom exports, and their labels.
func described() map[string][]string {
	descs := make(chan *prometheus.Desc, 1000)
	eddaprom.New(eddaprom.Options{}).Describe(descs)
	close(descs)
	found := map[string][]string{}
	for d := range descs {
		text := d.String()
		labels := descLabels.FindStringSubmatch(text)[1]
		found[descName.FindStringSubmatch(text)[1]] = strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })
	}
	return found
}
