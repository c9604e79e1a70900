package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// job is the message that manifests of these tests emit.
type job struct {
	Key string
	N   int
}

func (job) Kind() string { return "run.job" }

// giveUp is the policy of an endpoint that tries once.
func giveUp(recoverability.Failure) recoverability.Decision { return recoverability.DeadLetter() }

// manifest makes a manifest that sends jobs.
func (w *world) manifest(name string, retries int) {
	w.t.Helper()
	w.exec(`INSERT INTO edda.manifest (name, definition, retries, kind, body) VALUES ($1, '{}', $2, 'run.job', '{}')
		ON CONFLICT DO NOTHING`, name, retries)
}

// dispatched makes a run as the scheduler does, without its message.
func (w *world) dispatched(manifest string) saga.Firing {
	w.t.Helper()
	f := saga.Firing{Manifest: manifest, Run: newID(w.t), Attempt: 1, Due: time.Date(2026, 3, 1, 2, 30, 0, 0, time.UTC)}
	w.exec(`INSERT INTO edda.run (id, manifest_id, origin, state, due, ready, attempt)
		SELECT $1, id, 'manual', 'active', now(), now(), 1 FROM edda.manifest WHERE name = $2`, [16]byte(f.Run),
		manifest)
	w.attempt(f)
	return f
}

func (w *world) attempt(f saga.Firing) {
	w.t.Helper()
	w.exec(`INSERT INTO edda.run_attempt (run, attempt, message_id) VALUES ($1, $2, gen_random_uuid())`,
		[16]byte(f.Run), f.Attempt)
}

// fire makes a run of a manifest with two retries, and sends its message.
func (w *world) fire(m saga.Message, o ...saga.SendOption) saga.Firing {
	w.t.Helper()
	w.manifest("nightly", 2)
	f := w.dispatched("nightly")
	w.send(m, append(o, saga.WithFiring(f))...)
	return f
}

// again starts the next attempt of a run: the messages of earlier attempts are no longer current.
func (w *world) again(f saga.Firing) saga.Firing {
	w.t.Helper()
	f.Attempt++
	w.exec(`UPDATE edda.run SET attempt = $2, state = 'active' WHERE id = $1`, [16]byte(f.Run), f.Attempt)
	w.attempt(f)
	return f
}

// cancelRunInSQL cancels a run as other programs do; it waits for a transaction that has locked the run.
func (w *world) cancelRunInSQL(f saga.Firing) {
	w.t.Helper()
	w.exec(`UPDATE edda.run SET state = 'cancelled', ended = now() WHERE id = $1 AND state = 'active'`, [16]byte(f.Run))
}

// runOf describes a run and its last attempt: "state/outcome".
func (w *world) runOf(f saga.Firing) string {
	w.t.Helper()
	return w.text(`SELECT r.state || '/' || coalesce(a.outcome, 'open') FROM edda.run r
		JOIN edda.run_attempt a ON a.run = r.id AND a.attempt = $2
		WHERE r.id = $1`, [16]byte(f.Run), f.Attempt)
}

func (w *world) wantRun(f saga.Firing, want string) {
	w.t.Helper()
	if got := w.runOf(f); got != want {
		w.t.Errorf("the run is %s, want %s\nevents: %s", got, want, w.story())
	}
}

func (w *world) untilRun(f saga.Firing, want string) {
	w.t.Helper()
	w.until("the run is "+want, func() bool { return w.runOf(f) == want })
}

// jobs handles a job in three ways. Each way ends the run in a different place.
var jobs = map[string]func(do func(job) error) bus.Part{
	"batch": func(do func(job) error) bus.Part {
		return bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m job) error { return do(m) })
	},
	"leased": func(do func(job) error) bus.Part {
		return bus.Handle(func(_ *bus.Context, m job) error { return do(m) })
	},
	"pessimistic saga": func(do func(job) error) bus.Part { return bus.Saga(jobSaga(saga.Pessimistic, do)) },
	"optimistic saga":  func(do func(job) error) bus.Part { return bus.Saga(jobSaga(saga.Optimistic, do)) },
}

type nothing struct{}

func jobSaga(store saga.Store, do func(job) error) *saga.Definition {
	return saga.Define("worker", saga.Options{Store: store},
		saga.StartedBy(func(m job) string { return "k" + m.Key }, func(_ *nothing, ctx *saga.Context, m job) error {
			ctx.Complete()
			return do(m)
		}))
}

func everyWay(t *testing.T, test func(t *testing.T, part func(do func(job) error) bus.Part)) {
	t.Parallel()
	for name, part := range jobs {
		t.Run(name, func(t *testing.T) { test(t, part) })
	}
}

func TestRunStatements(t *testing.T) {
	w := newWorld(t, bus.Options{})
	pgtest.Statements(t, w.owner, w.parsed(), "../internal/engine/runs/runs.sql")
}

// A run ends with the outcome of its message, and without a dead letter: the run takes its place.
func TestRunEndsAsItsMessage(t *testing.T) {
	endings := map[string]struct {
		err  error
		want string
		text string
	}{
		"handled":     {nil, "succeeded/succeeded", ""},
		"failed":      {errNo, "waiting/failed", "no"},
		"permanent":   {saga.Permanent(errNo), "dead/failed", "no"},
		"discarded":   {saga.Discard("not today"), "cancelled/discarded", "not today"},
		"unprintable": {errors.New("no \x00\xff" + strings.Repeat("é", 1<<16)), "waiting/failed", "no \uFFFD"},
	}
	everyWay(t, func(t *testing.T, part func(func(job) error) bus.Part) {
		for name, ending := range endings {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				w.start("workers", bus.EndpointOptions{Policy: giveUp}, part(func(job) error { return ending.err }))
				f := w.fire(job{})
				w.untilEmpty("workers")
				w.until("it is told", func() bool { return len(eventsOf[event.BatchDone](w)) > 0 })
				w.wantRun(f, ending.want)
				text := w.text(`SELECT error FROM edda.run_attempt`)
				if !strings.HasPrefix(text, ending.text) || len(text) > 8192 || ending.text == "" && text != "" {
					t.Errorf("its error begins with %.20q and has %d bytes", text, len(text))
				}
				w.want(0, `SELECT count(*) FROM edda.dead_letter`)
				failed := eventsOf[event.RunFailed](w)
				if told := strings.HasSuffix(ending.want, "failed"); told != (len(failed) == 1) || told &&
					failed[0].Final != (name == "permanent") {
					t.Errorf("told: %+v", failed)
				}
				if n := len(eventsOf[event.DeadLettered](w)); n > 0 {
					t.Errorf("%d messages were dead-lettered", n)
				}
			})
		}
	})
}

// A message that no handler can handle makes its run dead, whatever retries its manifest has.
func TestRunOfAMessageThatNobodyCanHandle(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ kind, body string }{
		"undecodable":  {"run.job", `{"N": "many"}`},
		"unknown kind": {"run.unheard", `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, part func(func(job) error) bus.Part) {
				w := newWorld(t, bus.Options{})
				w.start("workers", bus.EndpointOptions{UnknownKindTimeout: time.Millisecond},
					part(func(job) error { return nil }))
				w.manifest("nightly", 5)
				f := w.dispatched("nightly")
				w.raw(test.kind, test.body, fmt.Sprintf(`{"edda-run":"%s"}`, f.Run), "workers")
				w.untilRun(f, "dead/failed")
				w.untilEmpty("workers")
				w.want(0, `SELECT count(*) FROM edda.dead_letter`)
			})
		})
	}
}

// If a header names no valid run, or a run that does not exist, the message is kept as a dead letter, because it exists
// nowhere else.
func TestMessageOfNoRunIsADeadLetter(t *testing.T) {
	run := "0197f3b0-0000-7000-8000-000000000001"
	tests := map[string]struct{ header, reason, text string }{
		"no such run":       {`{"edda-run":"` + run + `"}`, "its run does not exist", "its run does not exist"},
		"no id":             {`{"edda-run":"seven"}`, "permanent", "edda-run"},
		"no run":            {`{"edda-manifest":"nightly"}`, "permanent", "want a run"},
		"attempt 0":         {`{"edda-run":"` + run + `","edda-run-attempt":"0"}`, "permanent", "attempt"},
		"attempt too large": {`{"edda-run":"` + run + `","edda-run-attempt":"3000000000"}`, "permanent", "attempt"},
	}
	everyWay(t, func(t *testing.T, part func(func(job) error) bus.Part) {
		w := newWorld(t, bus.Options{})
		w.start("workers", bus.EndpointOptions{}, part(func(job) error { t.Error("it was handled"); return nil }))
		for name, test := range tests {
			w.raw("run.job", `{}`, test.header, "workers")
			w.untilEmpty("workers")
			got := w.text(`DELETE FROM edda.dead_letter RETURNING reason || ': ' || error`)
			if !strings.HasPrefix(got, test.reason) || !strings.Contains(got, test.text) {
				t.Errorf("%s: the dead letter says %q", name, got)
			}
		}
	})
}

// A message whose header is broken elsewhere ends its run all the same.
func TestRunOfAMessageWithABrokenHeader(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("workers", bus.EndpointOptions{}, jobs["batch"](func(job) error { return nil }))
	w.manifest("nightly", 5)
	f := w.dispatched("nightly")
	w.raw("run.job", `{}`, fmt.Sprintf(`{"edda-run":"%s","edda-intent":"whim"}`, f.Run), "workers")
	w.untilRun(f, "dead/failed")
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

// A message has no effect if its run was cancelled while it waited, or if a later attempt of the run has begun.
func TestMessageOfARunThatIsOverIsDropped(t *testing.T) {
	everyWay(t, func(t *testing.T, part func(func(job) error) bus.Part) {
		w := newWorld(t, bus.Options{})
		handled := make(chan job, 10)
		workers := part(func(m job) error { handled <- m; return nil })
		w.install("workers", workers)
		cancelled, stale := w.fire(job{Key: "a", N: 1}), w.fire(job{Key: "b", N: 2})
		w.cancelRunInSQL(cancelled)
		current := w.again(stale)
		w.send(job{Key: "c", N: 3}, saga.WithFiring(current))
		w.start("workers", bus.EndpointOptions{}, workers)
		w.untilEmpty("workers")
		if m := await(w, "the current attempt", handled); m.N != 3 || len(handled) > 0 {
			t.Errorf("%+v was handled, and %d more", m, len(handled))
		}
		w.wantRun(cancelled, "cancelled/open")
		w.wantRun(current, "succeeded/succeeded")
		w.wantText("open", `SELECT coalesce(outcome, 'open') FROM edda.run_attempt WHERE run = $1 AND attempt = 1`,
			[16]byte(stale.Run))
		w.want(2, `SELECT count(*) FROM edda.discarded WHERE reason = 'its run is over'`)
	})
}

// Of two messages with one attempt, which no scheduler sends, one is handled, also when both are in one batch.
func TestTwoMessagesOfOneAttempt(t *testing.T) {
	everyWay(t, func(t *testing.T, part func(func(job) error) bus.Part) {
		w := newWorld(t, bus.Options{})
		handled := make(chan job, 10)
		workers := part(func(m job) error { handled <- m; return nil })
		w.install("workers", workers)
		f := w.fire(job{Key: "a"})
		w.send(job{Key: "b"}, saga.WithFiring(f))
		w.start("workers", bus.EndpointOptions{}, workers)
		w.untilEmpty("workers")
		w.wantRun(f, "succeeded/succeeded")
		if len(handled) == 2 && strings.HasSuffix(t.Name(), "leased") {
			// the handlers ran at the same time; one of them has written nothing
			w.want(1, `SELECT count(*) FROM edda.discarded`)
		} else if len(handled) != 1 {
			t.Errorf("%d were handled", len(handled))
		}
	})
}

// A message that the bus retries does not change its run before it has ended, and then ends it once.
func TestRetryOfTheBusLeavesTheRunOpen(t *testing.T) {
	everyWay(t, func(t *testing.T, part func(func(job) error) bus.Part) {
		w := newWorld(t, bus.Options{})
		policy := func(recoverability.Failure) recoverability.Decision { return recoverability.RetryIn(time.Hour) }
		failed := make(chan struct{}, 10)
		var tries atomic.Int32
		w.start("workers", bus.EndpointOptions{Policy: policy, Poll: 10 * time.Millisecond}, part(func(job) error {
			if tries.Add(1) == 1 {
				failed <- struct{}{}
				return errNo
			}
			return nil
		}))
		f := w.fire(job{})
		await(w, "a failure", failed)
		w.until("it waits for its retry", func() bool {
			return w.count(`SELECT count(*) FROM `+w.queue("workers")+` WHERE attempt = 1`) == 1
		})
		w.wantRun(f, "active/open")
		w.want(1, `SELECT count(*) FROM edda.run WHERE beat IS NULL`) // while it waits, a run without beats is not lost
		w.exec(`UPDATE ` + w.queue("workers") + ` SET due = now()`)
		w.untilRun(f, "succeeded/succeeded")
	})
}

// Operator.Cancel of a waiting message cancels its run.
func TestCancelOfAMessageEndsItsRun(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("workers", jobs["batch"](func(job) error { return nil }))
	f := w.manifestedID()
	did, err := w.operator().Messages().Cancel(t.Context(), "workers", f.id, "not needed")
	if err != nil || did != operate.CancelledWaiting {
		t.Fatalf("%v, %v", did, err)
	}
	w.wantRun(f.Firing, "cancelled/cancelled")
	w.wantText("not needed", `SELECT error FROM edda.run_attempt`)
}

type firedID struct {
	saga.Firing
	id saga.ID
}

func (w *world) manifestedID() firedID {
	w.t.Helper()
	w.manifest("nightly", 2)
	f := w.dispatched("nightly")
	return firedID{f, w.send(job{}, saga.WithFiring(f)).ID}
}

// A cancel of a run whose message is in a batch waits for the batch, and comes too late.
func TestCancelOfARunWaitsForItsBatch(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	w.start("workers", bus.EndpointOptions{}, jobs["batch"](func(job) error { g.pass(); return nil }))
	f := w.fire(job{})
	<-g.came
	conn := w.begin().Conn()
	cancelled := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()),
			w.sql(`UPDATE edda.run SET state = 'cancelled' WHERE state = 'active'`))
		cancelled <- err
	}()
	pgtest.AwaitBlocked(t, w.owner, conn)
	g.open()
	if err := <-cancelled; err != nil {
		t.Error(err)
	}
	w.wantRun(f, "succeeded/succeeded")
}

// If a handler changes its own run, in the transaction that consumes the message, the whole transaction is undone.
func TestHandlerDoesNotEndItsOwnRun(t *testing.T) {
	w := newWorld(t, bus.Options{})
	if w.role != "" {
		w.exec(`GRANT UPDATE ON edda.run TO "` + w.role + `"`)
	}
	var tries atomic.Int32
	w.start("workers", bus.EndpointOptions{Poll: 10 * time.Millisecond},
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ job) error {
			if tries.Add(1) > 1 {
				return nil
			}
			_, err := tx.Exec(ctx, w.sql(`UPDATE edda.run SET state = 'cancelled' WHERE id = $1`),
				[16]byte(ctx.Info().Firing.Run))
			return err
		}))
	f := w.fire(job{})
	w.untilEmpty("workers")
	w.wantRun(f, "succeeded/succeeded")
	if n := len(eventsOf[event.BatchFailed](w)); n != 1 {
		t.Errorf("%d batches failed, want 1", n)
	}
}

// The log line of a failed run names the run and its manifest.
func TestLogOfARunThatFailed(t *testing.T) {
	var texts lines
	w := newWorld(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&texts, nil))})
	w.start("workers", bus.EndpointOptions{}, jobs["batch"](func(job) error { return saga.Permanent(errNo) }))
	f := w.fire(job{})
	w.untilRun(f, "dead/failed")
	w.until("it is logged", func() bool { return strings.Contains(texts.String(), "edda: run failed") })
	for _, want := range []string{"level=WARN", "manifest=nightly", "run=" + f.Run.String(), "run_attempt=1",
		"final=true", "reason=permanent", "error="} {
		if !strings.Contains(texts.String(), want) {
			t.Errorf("no %s in %s", want, texts.String())
		}
	}
}

// A raw handler ends runs as any other handler does; the runs of messages that it leaves stay open.
func TestRunsOfARawHandler(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var left atomic.Bool
	w.start("bridge", bus.EndpointOptions{Policy: giveUp, Poll: 10 * time.Millisecond},
		bus.HandleRaw(func(_ *bus.Context, d *saga.Delivery) error {
			switch {
			case strings.Contains(string(d.Body), `"bad"`):
				return errNo
			case left.CompareAndSwap(false, true):
				return bus.ErrLeave
			}
			return nil
		}))
	good, bad := w.fire(job{Key: "good"}, saga.To("bridge")), w.fire(job{Key: "bad"}, saga.To("bridge"))
	w.untilRun(good, "succeeded/succeeded")
	w.untilRun(bad, "waiting/failed")
}

// The distributor of a partitioned endpoint moves the message of a run unchanged, and ends the run of a message that it
// cannot move.
func TestRunsOfAPartitionedEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	o := bus.PartitionOptions{Partitions: 2}
	part := bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ job) error {
		if ctx.Info().Firing == nil {
			return saga.Permanent(errNo)
		}
		return nil
	}, bus.KeyedBy(func(m job) string { return m.Key }))
	w.installPartitioned("workers", o, part)
	p := w.partitioned(w.bus, "workers", o, part)
	w.runPartitioned(p)
	moved, keyless := w.fire(job{Key: "a"}), w.fire(job{})
	w.untilRun(moved, "succeeded/succeeded")
	w.untilRun(keyless, "dead/failed")
}
