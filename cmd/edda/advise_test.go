package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type poke struct{ ID string }

func (poke) Kind() string { return "counter.poke" }

// From handlers to sentences: an endpoint runs, ends, and another program reads what it counted.
func TestAdvise(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "advise").out, `| No endpoint of schema "SCHEMA" has counted anything in this time.`)
	b, err := bus.New(w.pool, bus.Options{Schema: w.schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	type state struct{ N int }
	slow := saga.Define("counter", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m poke) string { return m.ID },
			func(s *state, ctx *saga.Context, _ poke) error {
				s.N++
				for begun := time.Now(); time.Since(begun) < 6*time.Millisecond; { // a handler that computes
				}
				return nil
			}))
	w.handle(b, slow, 120)
	s := w.want(exitDone, "advise")
	says(t, s.out, "saga counter in endpoint counters (optimistic): not contended.", "slow-handler: its handlers take",
		"advice begins at 5]")
	var read struct {
		Sagas []struct {
			Messages          int64
			Judged, Contended bool
			Since             time.Time
			Handler           float64 `json:"handler_seconds"`
			Findings          []struct {
				Symptom          string
				Value, Threshold float64
			}
		}
	}
	w.decode(&read, "advise", "--json", "--period", "1h")
	if len(read.Sagas) != 1 {
		t.Fatalf("%+v", read)
	}
	c := read.Sagas[0]
	// a slow machine may add others
	slowest := -1
	for n, f := range c.Findings {
		if f.Symptom == "slow-handler" {
			slowest = n
		}
	}
	if c.Messages != 120 || !c.Judged || c.Contended || c.Handler < 120*0.006 || c.Since.IsZero() ||
		slowest < 0 || c.Findings[slowest].Value < 6 || c.Findings[slowest].Threshold != 5 {
		t.Errorf("%+v", c)
	}
	says(t, w.want(exitUsage, "advise", "--period", "-1h").err, "want 0 (a day) or more")
}

// handle runs an endpoint until it has handled n messages.
func (w *world) handle(b *bus.Bus, d *saga.Definition, n int) {
	w.t.Helper()
	e, err := bus.NewEndpoint(b, "counters", bus.EndpointOptions{Concurrency: 1}, bus.Saga(d))
	if err == nil {
		err = e.Install(w.t.Context())
	}
	for i := range n {
		if err == nil {
			_, err = b.Send(w.t.Context(), poke{ID: fmt.Sprint(i % 3)})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for begun := time.Now(); w.count(`SELECT count(*) FROM edda.queue_1`) > 0 && time.Since(begun) < 20*time.Second; {
		<-look.C
	}
	stop()
	if err := <-ended; err != nil {
		w.t.Fatal(err)
	}
}

// What makes every take slower is no saga's fault, and is named before sagas are judged.
func TestAdviseNamesWhatKeepsDeadRows(t *testing.T) {
	t.Parallel()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true,
		Settings: map[string]string{"autovacuum": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	edda := func(args ...string) string {
		said := runWith(t.Context(), append([]string{"--database", server.DSN()}, args...)...)
		if said.code != exitDone {
			t.Fatalf("%v: %+v", args, said)
		}
		return said.out
	}
	edda("migrate", "up")
	edda("migrate", "install", "orders")
	connect := func(parameter string) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), server.DSN()+parameter)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	report, work := connect("&application_name=report"), connect("")
	do := func(conn *pgx.Conn, sql string, args ...any) {
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	do(report, `BEGIN`)
	do(report, `SELECT pg_current_xact_id()`)
	do(work, `INSERT INTO edda.queue_1 (due, id, sent, kind, header, body) SELECT now(), gen_random_uuid(), now(),
		'k', '{}', '' FROM generate_series(1, 10000)`)
	do(work, `DELETE FROM edda.queue_1`)
	_ = work.Close(t.Context()) // which hands its statistics in
	work = connect("")
	do(work,
		`DO $$ BEGIN WHILE pg_stat_get_dead_tuples('edda.queue_1'::regclass) < 10000 LOOP COMMIT; END LOOP; END $$`)
	if out := edda("advise"); strings.Contains(out, "dead rows") {
		t.Errorf("a transaction of this moment is told of: %s", out)
	}
	do(work, `DO $$ BEGIN FOR n IN 1..1000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	do(report, `SELECT 1`)
	do(work, `CREATE ROLE looker`) // this role does not see how long a transaction has lasted
	do(work, `GRANT USAGE ON SCHEMA edda TO looker`)
	do(work, `GRANT SELECT ON ALL TABLES IN SCHEMA edda TO looker`)
	do(work, `ALTER ROLE looker LOGIN`)
	looker := strings.Replace(server.DSN(), "edda@", "looker@", 1)
	out := runWith(t.Context(), "--database", looker, "advise").out
	says(t, out, fmt.Sprintf("session %d (application \"report\", role \"edda\", database \"edda\") keeps dead "+
		"rows from being removed (for 100", report.PgConn().PID()),
		"Most are in the queue of endpoint orders: 10000.", "GRANT pg_read_all_stats TO \"looker\"")
	says(t, runWith(t.Context(), "--database", looker, "advise", "--json").out, `"holder": "session `,
		`"endpoint": "orders"`)
}

// The command says what a look has found; what a look finds is tested beside it.
func TestVitals(t *testing.T) {
	w := migrated(t)
	s := w.want(exitDone, "vitals", "--over", "10ms")
	says(t, s.out, " of write-ahead log were written in a second", " connections ", " of 197 connections are in use",
		"%, warn from 80 %]", "\nok    dead_rows    ", "Autovacuum is on for all ")
	var read struct {
		Level  string
		Role   string
		Vitals []struct {
			Vital, Subject, Level, Unit, Sentence, Do string
			Value, Threshold                          float64
		}
		Tables  []struct{ Table string }
		Used    int64 `json:"connections_used"`
		Allowed int64 `json:"connections_allowed"`
	}
	w.decode(&read, "vitals", "--json", "--over", "0")
	if read.Level == "" || read.Role != "edda" || len(read.Vitals) < 8 || len(read.Tables) != 20 || read.Used < 1 ||
		read.Allowed != 197 || read.Vitals[0].Level != read.Level || read.Vitals[0].Sentence == "" {
		t.Errorf("%+v", read)
	}
	for _, v := range read.Vitals {
		if v.Vital == vitals.WAL {
			t.Errorf("one look tells of %+v", v)
		}
	}
	says(t, w.want(exitUsage, "vitals", "--over", "-1s").err, "--over -1s: want 0 (one look) to 1h")
	w.exec("DROP TABLE edda.queue CASCADE")
	says(t, w.want(exitFailed, "vitals").err, "read the vitals of the database")
}
