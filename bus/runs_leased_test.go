package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

const jobLease = 4 * time.Second // a machine that freezes for that long loses claims

// A running handler beats for its run, with the name of its process.
func TestLeasedHandlerGivesSignsOfLife(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	w.start("workers", bus.EndpointOptions{Lease: jobLease}, jobs["leased"](func(job) error { g.pass(); return nil }))
	f := w.fire(job{})
	<-g.came
	w.want(1, `SELECT count(*) FROM edda.run_attempt WHERE began IS NOT NULL AND worker LIKE '%/%'`)
	w.exec(`UPDATE edda.run SET beat = beat - interval '1 hour'`)
	w.until("there is another sign of life", func() bool {
		return w.count(`SELECT count(*) FROM edda.run WHERE beat > now() - interval '1 minute'`) == 1
	})
	g.open()
	w.untilRun(f, "succeeded/succeeded")
	w.want(1, `SELECT count(*) FROM edda.run WHERE beat IS NULL`)
}

// With a long lease the beats come as often as with a short lease.
func TestSignsOfLifeDoNotWaitForALongLease(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	w.start("workers", bus.EndpointOptions{Lease: time.Hour}, jobs["leased"](func(job) error { g.pass(); return nil }))
	f := w.fire(job{})
	<-g.came
	w.exec(`UPDATE edda.run SET beat = beat - interval '1 hour'`)
	w.untilWithin(30*time.Second, "there is another sign of life", func() bool {
		return w.count(`SELECT count(*) FROM edda.run WHERE beat > now() - interval '1 minute'`) == 1
	})
	g.open()
	w.untilRun(f, "succeeded/succeeded")
}

// A run that is cancelled or timed out stops its handler, in any process, within a heartbeat.
func TestRunThatIsOverStopsItsHandler(t *testing.T) {
	t.Parallel()
	for _, ordering := range []bus.Ordering{bus.Unordered, bus.Overtaking, bus.Strict} {
		t.Run(fmt.Sprint(ordering), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			keep(w)
			stopped := make(chan error, 1)
			o := bus.EndpointOptions{Lease: jobLease, Ordered: ordering}
			var keyed []bus.HandleOption[job]
			if ordering != bus.Unordered {
				keyed = append(keyed, bus.KeyedBy(func(job) string { return "a" }))
			}
			w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "workers", o,
				bus.Handle(func(ctx *bus.Context, m job) error {
					if m.N > 0 {
						return nil
					}
					ctx.Send(called{})
					<-ctx.Done()
					stopped <- context.Cause(ctx)
					return ctx.Err()
				}, keyed...))
			f := w.fire(job{})
			w.until("it is at work", func() bool {
				return w.count(
					`SELECT count(*) FROM edda.run_attempt WHERE began IS NOT NULL`) == 1
			})
			next := w.fire(job{N: 1})
			w.exec(`UPDATE edda.run SET state = 'timed_out', ended = now() WHERE id = $1`, [16]byte(f.Run))
			if cause := await(w, "the end of the handler", stopped); !errors.Is(cause, bus.ErrCancelled) {
				t.Errorf("its context ended with %v", cause)
			}
			w.untilRun(next, "succeeded/succeeded")
			w.untilEmpty("workers")
			w.wantRun(f, "timed_out/open")
			w.want(1, `SELECT count(*) FROM edda.discarded`)
			w.want(0, `SELECT count(*) FROM edda.kept`)
		})
	}
}

// A handler that ignores its context and returns nil has no effect either, when its run is over.
func TestFinishOfARunThatIsOverWritesNothing(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 2} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			keep(w)
			g := newGate(t)
			w.start("workers", bus.EndpointOptions{Lease: time.Minute, ClusterConcurrency: limit},
				bus.Handle(func(ctx *bus.Context, m job) error {
					g.pass()
					ctx.Send(called{N: m.N})
					return nil
				}))
			f := w.fire(job{N: 1})
			<-g.came
			next := w.again(f)
			w.send(job{N: 2}, saga.WithFiring(next))
			g.open()
			w.untilRun(next, "succeeded/succeeded")
			w.untilEmpty("workers")
			w.untilEmpty("keepers")
			w.wantText("2", `SELECT string_agg(n::text, ',') FROM edda.kept`)
			w.wantText("open", `SELECT coalesce(outcome, 'open') FROM edda.run_attempt WHERE attempt = 1`)
		})
	}
}

// Operator.Cancel of a running handler ends its run as cancelled.
func TestCancelOfARunningHandlerEndsItsRun(t *testing.T) {
	w := newWorld(t, bus.Options{})
	began := make(chan struct{}, 1)
	w.start("workers", bus.EndpointOptions{Lease: jobLease}, bus.Handle(func(ctx *bus.Context, _ job) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}))
	f := w.manifestedID()
	await(w, "the handler", began)
	if did, err := w.operator().Messages().Cancel(t.Context(), "workers", f.id, "too long"); err != nil ||
		did != operate.CancelledRunning {
		t.Fatalf("%v, %v", did, err)
	}
	w.untilRun(f.Firing, "cancelled/cancelled")
	w.wantText("cancelled: too long", `SELECT error FROM edda.run_attempt`)
}

// The drain stops a handler and does not end its run: its message is queued, and there a run without beats is not lost.
func TestDrainLeavesTheRunOpen(t *testing.T) {
	w := newWorld(t, bus.Options{})
	began := make(chan struct{}, 1)
	e := w.endpoint("workers", bus.EndpointOptions{Drain: 10 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, _ job) error {
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}))
	w.makeQueue("workers")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	f := w.fire(job{})
	await(w, "the handler", began)
	cancel()
	if err := <-ended; !errors.Is(err, bus.ErrDrain) {
		t.Errorf("Run returned %v", err)
	}
	w.wantRun(f, "active/open")
	w.want(1, `SELECT count(*) FROM edda.run WHERE beat IS NULL`)
	w.want(1, `SELECT count(*) FROM `+w.queue("workers"))
}

// In an ordered endpoint runs end in the order of their messages, including failed and parked messages.
func TestRunsOfAnOrderedEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var mu sync.Mutex
	failed := map[int]bool{}
	o := bus.EndpointOptions{Ordered: bus.Strict, Poll: 20 * time.Millisecond, Lease: jobLease,
		Policy: func(recoverability.Failure) recoverability.Decision {
			return recoverability.RetryIn(10 * time.Millisecond)
		}}
	part := bus.Handle(func(_ *bus.Context, m job) error {
		mu.Lock()
		defer mu.Unlock()
		if m.N%5 == 0 && !failed[m.N] {
			failed[m.N] = true
			return errNo
		}
		return nil
	}, bus.KeyedBy(func(m job) string { return m.Key }))
	w.start("workers", o, part)
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "workers", o, part)
	const n = 40
	for i := range n {
		w.fire(job{Key: fmt.Sprint("k", i%3), N: i})
	}
	w.until("every run has ended", func() bool {
		return w.count(
			`SELECT count(*) FROM edda.run WHERE state = 'succeeded'`) == n
	})
	w.want(n, `SELECT successes FROM edda.manifest`)
	w.untilEmpty("workers")
}

// A finish checked the run of a lost claim together with that of a valid claim, and mixed up the answers: the message
// of the valid claim was deleted without its effects, and its run stayed active.
func TestLostClaimSettlesNoRun(t *testing.T) {
	w, handled, release := newBlocked(t)
	w.manifest("nightly", 2)
	f := w.dispatched("nightly")
	stolen := w.send(job{N: 1}, saga.WithFiring(f))
	w.until("the first is handled", func() bool { return handled() == 2 })
	w.send(job{N: 2}, saga.WithFiring(f))
	w.until("both are handled", func() bool { return handled() == 3 })
	w.exec("UPDATE "+w.queue("workers")+" SET owner = gen_random_uuid(), claim = claim + 1, due = now() + interval "+
		"'1 hour' WHERE id = $1", [16]byte(stolen.ID))
	release()
	w.untilRun(f, "succeeded/succeeded")
	w.until("its effect is there", func() bool { return w.count("SELECT count(*) FROM edda.kept") == 1 })
	w.wantText("2", "SELECT string_agg(n::text, ',') FROM edda.kept")
	w.exec("DELETE FROM " + w.queue("workers"))
}

// The same message is twice in one finish: its lease was over, and the process that still had it claimed it again.
func TestRunOfAMessageThatWasClaimedTwiceIsNotLost(t *testing.T) {
	w, handled, release := newBlocked(t)
	f := w.fire(job{N: 2})
	w.until("it is handled", func() bool { return handled() == 2 })
	w.exec("UPDATE " + w.queue("workers") +
		" SET due = now() WHERE body = convert_to('{\"Key\":\"\",\"N\":2}', 'UTF8')")
	w.until("it is handled again", func() bool { return handled() == 3 })
	release()
	w.untilRun(f, "succeeded/succeeded")
	w.untilEmpty("workers")
	w.untilEmpty("keepers")
	w.wantText("2", "SELECT string_agg(n::text, ',') FROM edda.kept")
}

// Handlers that waited for locked runs had all connections of their endpoint: no other message was extended, finished
// or claimed.
func TestLockedRunsKeepNobodyElseWaiting(t *testing.T) {
	w := newWorld(t, bus.Options{})
	keep(w)
	h := newHands()
	end, release := ended(t)
	w.start("workers", bus.EndpointOptions{Lease: 3 * time.Second, Poll: 50 * time.Millisecond, Concurrency: 16},
		bus.Handle(func(ctx *bus.Context, m call) error {
			defer h.take(ctx, "", m.N)()
			if m.N == 0 {
				until(ctx, end)
			}
			ctx.Send(called(m))
			return context.Cause(ctx)
		}), bus.Handle(func(*bus.Context, job) error { return nil }))
	long := w.send(call{N: 0})
	w.until("it runs", func() bool { return h.number() == 1 })
	w.manifest("nightly", 2)
	tx := w.begin()
	var fires []saga.Firing
	for range 4 {
		f := w.dispatched("nightly")
		w.execTx(tx, "SELECT FROM edda.run WHERE id = $1 FOR UPDATE", [16]byte(f.Run))
		w.send(job{}, saga.WithFiring(f))
		fires = append(fires, f)
	}
	w.untilWaiting("run_check")
	for n := range 20 {
		w.send(call{N: n + 1})
	}
	w.until("the others are handled", func() bool { return w.count("SELECT count(*) FROM edda.kept") == 20 })
	due := func() string {
		return w.text("SELECT due::text FROM "+w.queue("workers")+" WHERE id = $1", [16]byte(long.ID))
	}
	for range 4 { // more than a lease
		before := due()
		w.until("the long one is extended", func() bool { return due() != before })
	}
	h.want(t)
	if times := h.times("0"); times != 1 {
		t.Errorf("the long one began %d times", times)
	}
	w.commit(tx)
	release()
	for _, f := range fires {
		w.untilRun(f, "succeeded/succeeded")
	}
	w.untilEmpty("workers")
}

// newBlocked has an endpoint that handles jobs, and cannot finish one until release is called.
func newBlocked(t *testing.T) (w *world, handled func() int, release func()) {
	w = newWorld(t, bus.Options{})
	keep(w)
	var calls atomic.Int32
	gate := make(chan struct{})
	w.start("workers", bus.EndpointOptions{Lease: time.Hour, Poll: 20 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m job) error {
			calls.Add(1)
			ctx.Send(called{N: m.N})
			return nil
		}), bus.Handle(func(*bus.Context, call) error {
			calls.Add(1)
			<-gate
			return nil
		}))
	handled = func() int { return int(calls.Load()) }
	sent := w.send(call{N: -1})
	w.until("it has begun", func() bool { return handled() == 1 })
	tx := w.lockRow("workers", sent.ID)
	close(gate)
	w.untilWaiting("finish")
	return w, handled, func() { w.commit(tx) }
}

// A handler that leaves its run ends the message, and a different program ends the run: until then it is active, and
// its next beat is due.
func TestRunThatIsLeftStaysOpen(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]bus.Part{
		"batch":  bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m job) error { ctx.LeaveRun(); return failing(m) }),
		"leased": bus.Handle(func(ctx *bus.Context, m job) error { ctx.LeaveRun(); return failing(m) }),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.start("workers", bus.EndpointOptions{Policy: giveUp}, part)
			f := w.fire(job{})
			w.untilEmpty("workers")
			w.wantRun(f, "active/open")
			w.want(1, `SELECT count(*) FROM edda.run WHERE beat IS NOT NULL`)
			w.want(0, `SELECT count(*) FROM edda.discarded`)
			failed := w.fire(job{N: -1}) // a handler that fails leaves no run open
			w.untilRun(failed, "waiting/failed")
			w.send(job{}) // no manifest emitted it
			w.untilEmpty("workers")
		})
	}
}

// failing is the error of a job below 0.
func failing(m job) error {
	if m.N < 0 {
		return errNo
	}
	return nil
}
