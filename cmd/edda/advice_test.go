package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// healthy is a saga that nothing is to be said about.
func healthy() operate.SagaCounters {
	return operate.SagaCounters{
		Endpoint: "orders", Saga: "order", Store: "optimistic", Concurrency: 3, BatchMax: 500,
		Messages: operate.MessageCounters{Taken: 10_100, Steps: 10_000, Conflicts: 100},
		Saves: operate.SaveCounters{
			Batches: 1000, Instances: 9000, Writes: 9000, Starts: 3000, Lost: 100, StateBytes: 9000 * 300,
		},
		Waiting: operate.WaitCounters{Waits: 10, Timeouts: 9, Wait: time.Second, Turns: 50, Turn: time.Second},
		Times: operate.TimeCounters{
			Handler: 100 * time.Millisecond, Critical: 50 * time.Second, Batch: 10 * time.Second,
		},
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	queue := operate.QueueInfo{Endpoint: "orders"}
	behind := operate.QueueInfo{Endpoint: "orders", Ready: 70_000, Lag: 9 * time.Second}
	plain := operate.SagaCounters{
		Endpoint: "orders", Messages: operate.MessageCounters{Steps: 400, Taken: 400},
		Times: operate.TimeCounters{Critical: 4 * time.Second, Batch: time.Second},
	}
	for _, c := range []struct {
		name   string
		change func(c *operate.SagaCounters)
		queue  operate.QueueInfo
		others []operate.SagaCounters
		want   []string // symptoms
		says   []string
	}{
		{"healthy", func(*operate.SagaCounters) {}, queue, nil, nil, nil},
		{"healthy and behind", func(*operate.SagaCounters) {}, behind, []operate.SagaCounters{plain}, nil, nil},
		{"nothing was done", func(c *operate.SagaCounters) {
			*c = operate.SagaCounters{Endpoint: "orders",
				Saga: "order"}
		},
			queue, nil, nil, nil},
		{"too little to go by", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Steps,
				c.Messages.Conflicts = 99, 9, 90
		}, queue, nil,
			nil, nil},
		// S4-21: a high number of retries from conflicts.
		{"conflicts", func(c *operate.SagaCounters) { c.Messages.Conflicts = 2500 }, queue, nil, []string{"conflicts"},
			[]string{"20.0 % of its attempts", "(2500 of 12500)", "saga.Pessimistic"}},
		{"conflicts at the threshold", func(c *operate.SagaCounters) {
			c.Messages.Steps, c.Messages.Conflicts = 9800,
				200
		}, queue, nil,
			[]string{"conflicts"}, nil},
		{"conflicts below it", func(c *operate.SagaCounters) { c.Messages.Steps, c.Messages.Conflicts = 9801, 199 },
			queue, nil, nil, nil},
		{"conflicts of the pessimistic store",
			func(c *operate.SagaCounters) { c.Store, c.Messages.Conflicts = "pessimistic", 2500 },
			queue, nil, []string{"conflicts"},
			[]string{"has the Pessimistic store already"}},
		{"starts race", func(c *operate.SagaCounters) { c.Saves.LostStarts = 1000 }, queue, nil,
			[]string{"start-races"},
			[]string{"25.0 % of its starts came second (1000 of 4000)", "one earlier message"}},
		// S4-22: retries exhausted, messages in the error queue.
		{"dead of conflicts", func(c *operate.SagaCounters) { c.Messages.Dead, c.Messages.DeadConflicts = 5, 3 }, queue,
			nil,
			[]string{"conflict-deaths"},
			[]string{"3 messages are dead letters", "edda dead retry", "EndpointOptions.MaxConflicts"}},
		{"dead of something else", func(c *operate.SagaCounters) { c.Messages.Dead = 5 }, queue, nil, nil, nil},
		// S4-23: timeouts while waiting for the same lock.
		{"lock timeouts", func(c *operate.SagaCounters) {
			c.Waiting.Waits, c.Waiting.Timeouts, c.Waiting.Wait = 100, 50, 4*time.Second
		}, queue,
			nil, []string{"lock-timeouts"},
			[]string{"50.0 % of its waits", "(50 of 100, 40ms on average)", "saga.Options.LockWait"}},
		// S4-24: critical time high compared with the handlers' own.
		{"critical time", func(c *operate.SagaCounters) { c.Times.Critical = 30_000 * time.Second }, queue, nil,
			[]string{"critical-time"},
			[]string{"a message takes 3s from its send", "handler has 10µs and its batch 10ms",
				"The queue is short now"}},
		{"critical time with a long queue", func(c *operate.SagaCounters) { c.Times.Critical = 30_000 * time.Second },
			behind,
			nil, []string{"critical-time"},
			[]string{"70000 messages are ready now. Look at what the sessions",
				"few are active, add workers or servers", "the same rows of yours, and more servers would wait " +
					"with them"}},
		{"critical time with a little contention",
			func(c *operate.SagaCounters) { c.Times.Critical, c.Messages.Conflicts = 30_000*time.Second, 300 }, behind,
			nil,
			[]string{"conflicts", "critical-time"},
			[]string{"contention above costs 20.0 % of the work at most, which does not explain that", "query 1"}},
		{"critical time for contention", func(c *operate.SagaCounters) {
			c.Times.Critical, c.Messages.Conflicts = 30_000*time.Second,
				10_000
		}, behind, nil, []string{"conflicts", "critical-time"},
			[]string{"What keeps it there is the contention above"}},
		{"critical time of slow handlers", func(c *operate.SagaCounters) {
			c.Times.Critical, c.Times.Handler = 30_000*time.Second, 10_000*time.Second
		}, queue, nil, []string{"slow-handler"}, []string{"its handlers take 1s on average", "plain handler"}},
		// S4-25: both rise, and nothing is saturated: the time goes into waiting for each other.
		{"waiting", func(c *operate.SagaCounters) {
			c.Times.Critical, c.Waiting.Wait, c.Waiting.Turn = 5000*time.Second, 7*time.Second,
				time.Second
		}, queue, nil, []string{"waiting"},
			[]string{"80.0 % of their time", "(7s for those of other servers, 1s for those of their own)",
				"where they are busy, waits are long because everything is", "more processors, connections or " +
					"servers do not help", "in order or partitioned by key"}},
		{"waiting that nobody feels", func(c *operate.SagaCounters) { c.Waiting.Turn = 9 * time.Second }, queue, nil,
			nil, nil},
		{"put down here", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Queued, c.Concurrency = 30_000,
				20_000, 9
		}, queue,
			nil, []string{"put-down"},
			[]string{"66.7 % of the messages", "(20000 of 30000)", "Concurrency of 2 instead of 9"}},
		{"put down here, of few workers", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Queued, c.Concurrency = 30_000, 20_000,
				2
		}, queue, nil, []string{"put-down"},
			[]string{"more workers would not help"}},
		{"put down for other servers", func(c *operate.SagaCounters) {
			c.Messages.Taken, c.Messages.Busy = 30_000,
				20_000
		}, queue, nil,
			[]string{"put-down"},
			[]string{"fewer servers"}},
		{"large states", func(c *operate.SagaCounters) { c.Saves.StateBytes = c.Saves.Writes * 100 << 10 }, queue, nil,
			[]string{"large-state"},
			[]string{"100 KiB on average", "a reference"}},
		{"full batches", func(c *operate.SagaCounters) { c.Saves.Batches = 20 }, behind, nil, []string{"full-batches"},
			[]string{"(500 messages of 500)", "9s behind", "BatchMax at 1000"}},
		{"full batches and no lag", func(c *operate.SagaCounters) { c.Saves.Batches = 20 }, queue, nil, nil, nil},
		{"one hot instance", func(c *operate.SagaCounters) { c.Saves.Instances, c.Messages.Conflicts = 50, 2500 },
			queue, nil,
			[]string{"conflicts", "hot-instance"},
			[]string{"200 messages for one instance", "√n sagas", "docs/guide/hot-sagas.md"}},
		{"one hot instance, at ease", func(c *operate.SagaCounters) { c.Saves.Instances = 50 }, queue, nil, nil, nil},
		{"contended among others", func(c *operate.SagaCounters) { c.Messages.Conflicts = 2500 }, queue,
			[]operate.SagaCounters{plain},
			[]string{"conflicts", "neighbours"},
			[]string{"90.9 % of the time of endpoint orders", "plain handlers (400 messages, critical time 10ms)",
				"an endpoint of its own"}},
		{"contended with others elsewhere", func(c *operate.SagaCounters) { c.Messages.Conflicts = 2500 }, queue,
			[]operate.SagaCounters{{Endpoint: "mail", Messages: operate.MessageCounters{Steps: 7}}},
			[]string{"conflicts"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one := healthy()
			c.change(&one)
			got := advise(append([]operate.SagaCounters{one}, c.others...),
				[]operate.QueueInfo{{Endpoint: "mail", Ready: 1 << 20, Lag: time.Hour}, c.queue})[0]
			var symptoms, said []string
			for _, f := range got.findings {
				symptoms, said = append(symptoms, f.symptom), append(said, f.says)
				if f.value < f.threshold || f.number == "" {
					t.Errorf("%s: %v does not reach %v", f.symptom, f.value, f.threshold)
				}
			}
			if !slices.Equal(symptoms, c.want) {
				t.Errorf("found %v, want %v", symptoms, c.want)
			}
			says(t, strings.Join(said, "\n"), c.says...)
		})
	}
}

// Each rule must have a case above, and a line of the page for users.
func TestEveryRuleIsExplained(t *testing.T) {
	t.Parallel()
	page := readPage(t, "../../docs/guide/hot-sagas.md")
	for _, r := range rules {
		if !strings.Contains(page, "| `"+r.symptom+"` |") {
			t.Errorf("docs/guide/hot-sagas.md has no line for %s", r.symptom)
		}
		if want := fmt.Sprintf("%.3g", r.threshold); !strings.Contains(page, want) {
			t.Errorf("docs/guide/hot-sagas.md does not say from when on %s is said: %s", r.symptom, want)
		}
	}
}

// An endpoint of sagas alone has messages that reach no handler, and no plain handler.
func TestAdviceSpeaksOfHandlersThatAreThere(t *testing.T) {
	t.Parallel()
	for steps, want := range map[int64]string{
		0: "messages of endpoint orders that no handler has handled: 500 times taken, 490 times tried again, 3 " +
			"dead letters.",
		200: "plain handlers of endpoint orders: nothing to change. 200 messages",
	} {
		a := advise([]operate.SagaCounters{{
			Endpoint: "orders", Messages: operate.MessageCounters{Taken: 500, Steps: steps, Retries: 490, Dead: 3},
		}},
			nil)[0]
		says(t, textOf(a.lines()), want)
	}
}

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
	var read struct{ Sagas []advisedJSON }
	w.decode(&read, "advise", "--json", "--period", "1h")
	if len(read.Sagas) != 1 {
		t.Fatalf("%+v", read)
	}
	c := read.Sagas[0]
	// a slow machine may add others
	slowest := slices.IndexFunc(c.Findings, func(f findingJSON) bool { return f.Symptom == "slow-handler" })
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
		'k', '{}', '' FROM generate_series(1, $1::int)`, operate.PinDeadRows)
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
	do(work, `CREATE ROLE looker`) // who does not see how long it has lasted
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

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
