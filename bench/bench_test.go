package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/bench/gallery"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TestMain makes the test binary a worker process when a benchmark under test starts one.
func TestMain(m *testing.M) {
	if job := os.Getenv(childVariable); job != "" {
		if err := runChild(context.Background(), job); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(gallery.Variable) != "" {
		if err := gallery.Run(context.Background()); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgdev.Main(m))
}

// Every peer runs all of its cases, also with two processes, and leaves the right number of effects.
func TestEveryPeerLeavesTheRightEffects(t *testing.T) {
	h := &harness{dsn: pgdev.DSN(t), db: pgdev.Pool(t), log: t.Output()}
	cases, err := choose(options{run: "step,hot,latency,backlog,timers,history,traced,viewed", n: 100, rounds: 1,
		size: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	results, err := h.rounds(t.Context(), cases, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, c := range cases {
		want++
		if c.Kept() {
			want += keptRounds - 1
		}
	}
	if len(results) != want {
		t.Errorf("%d results, want %d", len(results), want)
	}
}

// forgetful is a wrong engine: it consumes every message and changes nothing.
type forgetful struct{ tables }

func (forgetful) Work(ctx context.Context, w *Worker) error {
	db, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := w.Start(ctx); err != nil {
		return err
	}
	_, err = db.Exec(ctx, "DELETE FROM "+w.Schema()+".queue")
	return err
}

func TestALostEffectFailsTheRun(t *testing.T) {
	register("forgetful", forgetful{}, Case{Workload: Hot})
	t.Cleanup(func() { delete(peers, "forgetful") })
	c := peers["forgetful"].cases[0]
	c.N = 10
	h := &harness{dsn: pgdev.DSN(t), db: pgdev.Pool(t), log: t.Output()}
	_, err := h.rounds(t.Context(), []Case{c}, 1)
	if err == nil || !strings.Contains(err.Error(), "wrong effects") {
		t.Errorf("got %v, want an error about wrong effects", err)
	}
}

// A queue that is kept over the rounds is counted, too: messages that vanish from its far end are met.
func TestALostMessageOfAKeptQueueFailsTheRun(t *testing.T) {
	register("forgetful", forgetful{}, Case{Workload: Backlog, Size: 50})
	t.Cleanup(func() { delete(peers, "forgetful") })
	c := peers["forgetful"].cases[0]
	c.N = 10
	h := &harness{dsn: pgdev.DSN(t), db: pgdev.Pool(t), log: t.Output()}
	_, err := h.rounds(t.Context(), []Case{c}, 1)
	if err == nil || !strings.Contains(err.Error(), "wrong effects: 0 of 10 handled") {
		t.Errorf("got %v, want an error about wrong effects", err)
	}
}

func TestAnUnknownWorkloadIsToldTheKnownOnes(t *testing.T) {
	_, err := choose(options{run: "stop", rounds: 1})
	want := `-run: there is no workload "stop"; there are step, hot, latency, backlog, timers, leased, inbox, ` +
		`relay, history, traced, viewed and schedule`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestQuickLeavesOutLargeQueues(t *testing.T) {
	cases, err := choose(options{run: "backlog,timers", quick: true, rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Size > quickSize {
			t.Errorf("-quick has %s", c.Name())
		}
	}
}

// Two cases must never share a schema while both have tables, and a schema's name must need no quotes.
func TestEveryKeptCaseHasASchemaOfItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, name := range order {
		for _, c := range peers[name].cases {
			schema, who := c.Schema(), c.Peer+" "+c.Name()
			if strings.ContainsAny(schema, "- ") {
				t.Errorf("%s has the schema %s", who, schema)
			}
			if other, taken := seen[schema]; c.Kept() && taken {
				t.Errorf("%s and %s share the schema %s", who, other, schema)
			}
			seen[schema] = who
		}
	}
}

func TestAWorkerProcessThatFailsEndsTheRun(t *testing.T) {
	c := Case{Peer: "ceiling", Workload: Hot, Processes: 2, N: 1}
	err := workInChildren(t.Context(), "postgres://127.0.0.1:1/nobody", c, func() {})
	if err == nil || !strings.Contains(err.Error(), "before it was ready") {
		t.Errorf("got %v, want an error about a process that was never ready", err)
	}
}

func TestAMessageHandledTwiceIsAnError(t *testing.T) {
	w := &Worker{watch: newStopwatch(2)}
	w.watch.start(Charge{Seq: 1})
	first, second := w.Handled(Charge{Seq: 1}), w.Handled(Charge{Seq: 1})
	if first != nil || second == nil {
		t.Errorf("first %v, second %v; want nil and an error", first, second)
	}
	if _, err := w.watch.measured(); err == nil {
		t.Error("message 0 was never handled, and that is no error")
	}
}

func TestSendAllStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	w := &Worker{Case: Case{Workload: Latency, N: 5}, watch: newStopwatch(5)}
	if err := w.SendAll(ctx, func(context.Context, Charge) error { return nil }); !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
}
