package bus_test

import (
	"bytes"
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
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
)

func (w *world) settings() []operate.EndpointSettings {
	w.t.Helper()
	settings, err := w.operator().Endpoints().List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return settings
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestSettingsAreRows(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("a", bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }))
	w.install("b", bus.HandleTx(func(*bus.Context, pgx.Tx, paid) error { return nil }))
	steps := []struct {
		do   func(ctx context.Context) error
		want operate.EndpointSettings // of a
	}{
		{func(context.Context) error { return nil }, operate.EndpointSettings{}},
		{func(ctx context.Context) error { return w.operator().Endpoints().Resume(ctx, "a") },
			operate.EndpointSettings{}},
		{func(ctx context.Context) error { return w.operator().Endpoints().SetConcurrency(ctx, "a", 7) },
			operate.EndpointSettings{Concurrency: 7}},
		{func(ctx context.Context) error { return w.operator().Endpoints().Pause(ctx, "a", "deploy\x00") },
			operate.EndpointSettings{Concurrency: 7, Paused: true, Reason: "deploy\uFFFD"}},
		{func(ctx context.Context) error { return w.operator().Endpoints().Pause(ctx, "a", "still") },
			operate.EndpointSettings{Concurrency: 7, Paused: true, Reason: "still"}},
		{func(ctx context.Context) error { return w.operator().Endpoints().ResetConcurrency(ctx, "a") },
			operate.EndpointSettings{Paused: true, Reason: "still"}},
		{func(ctx context.Context) error { return w.operator().Endpoints().Resume(ctx, "a") },
			operate.EndpointSettings{}},
	}
	for n, step := range steps {
		w.must(step.do(t.Context()))
		step.want.Endpoint = "a"
		got := w.settings()
		if diff := cmp.Diff([]operate.EndpointSettings{step.want, {Endpoint: "b"}}, got,
			cmpopts.IgnoreFields(operate.EndpointSettings{}, "PausedAt", "PausedBy")); diff != "" {
			t.Errorf("after step %d (-want +got):\n%s", n, diff)
		}
		if got[0].Paused == got[0].PausedAt.IsZero() {
			t.Errorf("after step %d: paused %v since %v", n, got[0].Paused, got[0].PausedAt)
		}
	}
	for _, err := range []error{
		w.operator().Endpoints().Pause(t.Context(), "nowhere", ""),
		w.operator().Endpoints().Resume(t.Context(), "nowhere"),
		w.operator().Endpoints().SetConcurrency(t.Context(), "nowhere", 1),
		w.operator().Endpoints().ResetConcurrency(t.Context(), "nowhere"),
	} {
		if !errors.Is(err, bus.ErrNotInstalled) || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("%v, want ErrNotInstalled of nowhere", err)
		}
	}
	for _, n := range []int{0, -1, 10_001} {
		if err := w.operator().Endpoints().SetConcurrency(t.Context(), "a", n); err == nil ||
			!strings.Contains(err.Error(), "want 1 to 10000") {
			t.Errorf("concurrency %d: %v", n, err)
		}
	}
}

// Every process of the endpoint stops, whether it listens or polls. A process that starts later does not begin.
// Messages that were sent during the pause are handled afterwards.
func TestPauseHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	for _, poll := range []bool{false, true} {
		t.Run(fmt.Sprintf("polling only %v", poll), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			done := make(chan int, 100)
			part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error { done <- m.N; return nil })
			o, other := bus.EndpointOptions{Poll: time.Hour}, bus.Options{}
			if poll {
				o.Poll, other.Wakeup = 10*time.Millisecond, bus.PollOnly
			}
			w.install("stops", part)
			process := w.process(pgdev.DSN(t), other)
			w.startOn(process, "stops", o, part)
			w.startOn(w.process(pgdev.DSN(t), other), "stops", o, part)
			if !poll {
				w.untilListening(2)
			}
			w.must(w.operator().Endpoints().Pause(t.Context(), "stops", "the shop is closed"))
			w.until("two processes are paused", func() bool { return len(eventsOf[event.Paused](w)) == 2 })
			for n := range 20 {
				w.send(add{N: n})
			}
			w.startOn(w.process(pgdev.DSN(t), other), "stops", o, part)
			w.until("the third is too", func() bool { return len(eventsOf[event.Paused](w)) == 3 })
			w.want(20, `SELECT count(*) FROM `+w.queue("stops"))
			if len(done) > 0 || len(eventsOf[event.BatchDone](w)) > 0 {
				t.Errorf("a paused endpoint took messages%s", w.story())
			}
			w.must(w.operator().Endpoints().Resume(t.Context(), "stops"))
			w.untilEmpty("stops")
		})
	}
}

// untilListening waits until n processes listen for notifications.
func (w *world) untilListening(n int) {
	w.t.Helper()
	w.until("they listen", func() bool {
		return w.count(`SELECT count(*) FROM edda.session WHERE locked AND ended IS NULL`) >= n // it locks after LISTEN
	})
}

// A batch that began before the pause is finished.
func TestPauseLetsABatchFinish(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	w.start("stops", bus.EndpointOptions{Poll: 10 * time.Millisecond},
		bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { g.pass(); return nil }))
	w.send(add{N: 1})
	await(w, "the handler", g.came)
	w.must(w.operator().Endpoints().Pause(t.Context(), "stops", ""))
	w.until("it is paused", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	w.send(add{N: 2})
	g.open()
	w.until("the batch is done", func() bool { return len(eventsOf[event.Handled](w)) == 1 })
	w.want(1, `SELECT count(*) FROM `+w.queue("stops"))
	w.must(w.operator().Endpoints().Resume(t.Context(), "stops"))
	w.untilEmpty("stops")
}

// atWork is a handler that counts how many calls run at a time. They wait until the test releases them.
type atWork struct {
	now   atomic.Int64
	leave chan struct{}
}

func (a *atWork) handle(ctx *bus.Context, _ pgx.Tx, _ add) error {
	a.now.Add(1)
	defer a.now.Add(-1)
	select {
	case <-a.leave:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// More workers begin without a restart. When there are fewer, surplus workers finish their messages first.
func TestConcurrencyChangesLive(t *testing.T) {
	w := newWorld(t, bus.Options{})
	a := &atWork{leave: make(chan struct{})}
	w.start("crew", bus.EndpointOptions{Concurrency: 1, BatchMax: 1, Poll: 10 * time.Millisecond,
		StepTimeout: time.Minute}, bus.HandleTx(a.handle))
	for range 60 {
		w.send(add{})
	}
	is := func(n int64) {
		t.Helper()
		w.until(fmt.Sprintf("%d are at work", n), func() bool { return a.now.Load() == n })
	}
	seen := 0
	heard := func(err error) {
		t.Helper()
		w.must(err)
		seen++
		w.until("the process knows", func() bool { return len(eventsOf[event.ConcurrencySet](w)) == seen })
	}
	set := func(n int) { t.Helper(); heard(w.operator().Endpoints().SetConcurrency(t.Context(), "crew", n)) }
	// The first handlers return first, so this releases as many as there are: then all that run were taken under the
	// new number.
	leave := func(n int) {
		t.Helper()
		for range n {
			select {
			case a.leave <- struct{}{}:
			case <-time.After(pgdev.Patience(20 * time.Second)):
				t.Fatal("nobody is at work")
			}
		}
	}
	is(1)
	set(6)
	is(6)
	set(2)
	leave(6)
	is(2)
	leave(10)
	w.until("sixteen are done, and two at work", func() bool {
		return len(eventsOf[event.Handled](w)) == 16 &&
			a.now.Load() == 2
	})
	w.must(w.operator().Endpoints().Pause(t.Context(), "crew", "and a pause"))
	w.until("it is paused", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	set(4)
	leave(2)
	is(0)
	w.must(w.operator().Endpoints().Resume(t.Context(), "crew"))
	is(4)
	heard(w.operator().Endpoints().ResetConcurrency(t.Context(), "crew"))
	leave(4)
	is(1)
	set(500) // the pool of a test has ten connections
	is(10)
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	close(a.leave)
	w.untilEmpty("crew")
}

// A surplus worker leaves messages in the queue, and wakes an idle worker, whose next poll is in an hour.
func TestWhoLeavesHandsOver(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("crew", bus.EndpointOptions{Concurrency: 4, Poll: time.Hour, BatchMax: 1, BatchTime: time.Millisecond},
		bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }))
	w.untilListening(1)
	for range 40 {
		for range 5 {
			w.send(add{})
		}
		w.must(w.operator().Endpoints().SetConcurrency(t.Context(), "crew", 1))
		w.must(w.operator().Endpoints().SetConcurrency(t.Context(), "crew", 4))
	}
	w.untilEmpty("crew")
}

// These lines are for alerts, and for people who start a paused program.
func TestLogOfSettings(t *testing.T) {
	var text bytes.Buffer // slog's handler serialises the writes, and it is read after the last one
	w := newWorld(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "since" {
				return slog.Attr{}
			}
			return a
		},
	}))})
	e := w.install("logs", bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }))
	w.must(w.operator().Endpoints().Pause(t.Context(), "logs", "no stock"))
	w.must(w.operator().Endpoints().SetConcurrency(t.Context(), "logs", 500))
	stop := w.run(e)
	w.until("it is paused", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	w.must(w.operator().Endpoints().Resume(t.Context(), "logs"))
	w.until("it runs", func() bool { return len(eventsOf[event.Resumed](w)) == 1 })
	stop()
	want := `
level=INFO msg="edda: endpoint started" endpoint=logs concurrency=10
level=WARN msg="edda: endpoint is paused" endpoint=logs reason="no stock" remedy="edda endpoint resume logs"
level=INFO msg="edda: concurrency set" endpoint=logs concurrency=10 before=3
level=WARN msg="edda: concurrency is cut to the pool's MaxConns" endpoint=logs wanted=500 concurrency=10
level=INFO msg="edda: endpoint resumed" endpoint=logs
level=INFO msg="edda: endpoint stopped" endpoint=logs error=<nil>
`
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(text.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var errPassword = errors.New("the password has expired")

// The policy pauses the endpoint in every process. The message has lost no attempt, and is handled after the resume.
func TestPolicyPausesTheEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	policy, err := recoverability.Choose(once,
		recoverability.OnError(errPassword, recoverability.Always(recoverability.PauseEndpoint("renew the password"))))
	if err != nil {
		t.Fatal(err)
	}
	var renewed atomic.Bool
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, add) error {
		if !renewed.Load() {
			return errPassword
		}
		return nil
	})
	o := bus.EndpointOptions{Policy: policy, Poll: 10 * time.Millisecond, Concurrency: 1}
	w.fill("calls", part, 1, 2, 3, 4, 5)
	w.start("calls", o, part)
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "calls", o, part)
	w.until("both processes are paused", func() bool { return len(eventsOf[event.Paused](w)) == 2 })
	if k := w.settings()[0]; !k.Paused || k.Reason != "renew the password" {
		t.Errorf("%+v", k)
	}
	w.want(5, `SELECT count(*) FROM `+w.queue("calls"))
	// the other process may have begun too
	if n := w.count(`SELECT sum(attempt) FROM ` + w.queue("calls")); n < 1 || n > 2 {
		t.Errorf("%d attempts were made, want one in each process at most", n)
	}
	renewed.Store(true)
	// the batch that the other process had in hand may still fail, and pause again
	w.until("all are handled", func() bool {
		if w.settings()[0].Paused {
			w.must(w.operator().Endpoints().Resume(t.Context(), "calls"))
		}
		w.hurry("calls")
		return w.count(`SELECT count(*) FROM `+w.queue("calls")) == 0
	})
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

// A concurrent transaction has locked the row of the settings. A batch never waits for it: the message is put back, and
// the next failure tries again.
func TestPauseByPolicyNeverWaits(t *testing.T) {
	w := newWorld(t, bus.Options{})
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return errPassword })
	w.start("calls", bus.EndpointOptions{Policy: recoverability.Always(recoverability.PauseEndpoint("x")),
		Poll: 10 * time.Millisecond}, part)
	w.until("it has a row", func() bool { return w.count(`SELECT count(*) FROM edda.endpoint_setting`) == 1 })
	holder := w.begin()
	w.execTx(holder, `SELECT FROM edda.endpoint_setting FOR UPDATE`)
	w.send(add{N: 1})
	w.until("the message is put back twice", func() bool {
		w.hurry("calls")
		return len(eventsOf[event.Retried](w)) >= 2
	})
	if w.settings()[0].Paused {
		t.Error("paused, and somebody holds the row")
	}
	w.commit(holder)
	w.until("it is paused", func() bool {
		w.hurry("calls")
		return w.settings()[0].Paused
	})
}

// A message that has lost too many saves would count as failed. A conflict policy keeps it out of the dead letters,
// without an attempt, or gives it up in its own way.
func TestConflictPolicyDecidesWhenTheBudgetIsSpent(t *testing.T) {
	t.Parallel()
	decisions := map[string]struct {
		decide recoverability.Decision
		ends   string // what is true in the end
	}{
		"again": {recoverability.RetryNow(), `SELECT count(*) FROM edda.saga WHERE state ->> 'Sum' = '1'`},
		"later": {recoverability.RetryIn(time.Hour),
			`SELECT count(*) FROM edda.queue_2 WHERE attempt = 0 AND conflict = 12
				AND due > now() + interval '59 minutes'`},
		"dead letter": {recoverability.DeadLetter(),
			`SELECT count(*) FROM edda.dead_letter WHERE reason = 'conflicts' AND conflicts = 12 AND attempts = 0`},
		"discard": {recoverability.DiscardBecause("never mind"),
			`SELECT count(*) FROM edda.discarded WHERE reason = 'never mind'`},
		"counts as failure": {recoverability.CountAsFailure(),
			`SELECT count(*) FROM edda.dead_letter WHERE reason = 'conflicts' AND attempts = 1`},
		"pauses": {recoverability.PauseEndpoint("hot"),
			`SELECT count(*) FROM edda.endpoint_setting WHERE reason = 'hot' AND endpoint = 'tallies'`},
		"decides nothing": {nil, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'the policy failed'`},
	}
	for name, test := range decisions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			policy := func(f recoverability.Failure) recoverability.Decision {
				if !errors.Is(f.Err, bus.ErrConflict) || f.First.IsZero() || f.Conflicts != 12 || f.Info.Attempt != 1 ||
					f.Now.IsZero() {
					t.Errorf("asked about %+v", f)
				}
				return test.decide
			}
			w.conflicting("tallies", bus.EndpointOptions{Policy: once, ConflictPolicy: policy}, "a")
			w.until("it has ended", func() bool { return w.count(test.ends) == 1 })
			if name != "dead letter" && name != "counts as failure" && name != "decides nothing" {
				w.want(0, `SELECT count(*) FROM edda.dead_letter`)
			}
		})
	}
}

// A message that lost too many saves fails, but a series of such failures does not slow the endpoint down.
func TestConflictsDoNotSlowTheEndpointDown(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	stop := w.conflicting("tallies", bus.EndpointOptions{Policy: once, Concurrency: 1, BatchMax: 1, BreakerFailures: 1,
		BreakerPause: time.Nanosecond}, "a", "b", "c")
	w.untilEmpty("tallies")
	stop()
	w.want(3, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'conflicts'`)
	if slowed := eventsOf[event.Slowed](w); len(slowed) > 0 {
		t.Errorf("it slowed down: %+v", slowed)
	}
}

// conflicting runs a saga whose instances are changed during each step, unless they are locked. It sends a message that
// has lost ten saves already to the instance of each key.
func (w *world) conflicting(name string, o bus.EndpointOptions, keys ...string) (stop func()) {
	w.t.Helper()
	def := tallies(saga.Optimistic, nil)
	w.install(name, bus.Saga(def))
	for _, key := range keys {
		w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
			VALUES (gen_random_uuid(), 'tally', $1, 1, 1, '{"Sum":0}')`, key)
		w.send(add{Key: key, N: 1})
	}
	w.exec(`UPDATE ` + w.queue(name) + ` SET conflict = 10`)
	changing := bus.Use(func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if _, err := w.pool.Exec(ctx, w.sql(`UPDATE edda.saga SET version = version + 1
				WHERE iid IN (SELECT iid FROM edda.saga FOR NO KEY UPDATE SKIP LOCKED)`)); err != nil {
				return fmt.Errorf("change it first: %w", err)
			}
			return next(ctx, d)
		}
	})
	return w.start(name, o, bus.Saga(def), changing)
}
