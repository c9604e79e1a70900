package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
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
	os.Exit(pgdev.Main(m))
}

// Every peer does every one of its cases, two processes included, with the effects counted.
func TestEveryPeerLeavesTheRightEffects(t *testing.T) {
	h := &harness{dsn: pgdev.DSN(t), db: pgdev.Pool(t), log: t.Output()}
	cases, err := choose(options{run: "step,hot,latency", n: 100, rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	results, err := h.rounds(t.Context(), cases, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(cases) {
		t.Errorf("%d results for %d cases", len(results), len(cases))
	}
}

// forgetful consumes every message and changes nothing: what a wrong engine would look like.
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
