package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newBus makes a bus with a clock of its own.
func newBus(t *testing.T, hear func(event.Event)) *memory.Bus {
	t.Helper()
	b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler), Events: hear})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func on(t *testing.T, b *memory.Bus, name string, o bus.EndpointOptions, parts ...bus.Part) {
	t.Helper()
	if _, err := memory.NewEndpoint(b, name, o, parts...); err != nil {
		t.Fatal(err)
	}
}

// start runs the bus until the end of the test.
func start(t *testing.T, b *memory.Bus) {
	t.Helper()
	stop, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func advance(t *testing.T, b *memory.Bus, d time.Duration) {
	t.Helper()
	if err := b.Advance(pgdev.Deadline(t), d); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, b *memory.Bus, m saga.Message, o ...saga.SendOption) {
	t.Helper()
	if _, err := b.Send(t.Context(), m, o...); err != nil {
		t.Fatal(err)
	}
}

// A timeout of a day takes no time, is never early, and its consequences are done when Advance returns.
func TestClockOfItsOwn(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	on(t, b, "orders", bus.EndpointOptions{}, bus.Saga(shop(24*time.Hour, saga.Options{})))
	on(t, b, "payment", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m charge) error {
		told.say("charge at %v", ctx.Now().Sub(noon))
		return nil
	}))
	on(t, b, "accounts", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m closed) error {
		told.say("%s at %v", m.How, ctx.Now().Sub(noon))
		return nil
	}))
	start(t, b)
	send(t, b, place7{"7"}, saga.Delay(time.Hour))
	advance(t, b, time.Hour-time.Microsecond)
	if got := told.sorted(); got != "" {
		t.Errorf("before its time: %s", got)
	}
	advance(t, b, time.Microsecond)
	if !told.has("charge at 1h0m0s") || told.has("no money at 25h0m0s") {
		t.Errorf("at its time: %s", told.sorted())
	}
	advance(t, b, 100*time.Hour)
	if !told.has("no money at 25h0m0s") || !told.has("accounts: handled closed") {
		t.Errorf("a day later: %s", told.sorted())
	}
	if got := b.Now(); !got.Equal(noon.Add(101 * time.Hour)) {
		t.Errorf("it is %v", got)
	}
	if n := b.Timers("orders"); n != 0 {
		t.Errorf("%d timeouts are remembered that have come", n)
	}
}

// With a clock of its own a program does the same in every run: here a retry after an hour, while others continue.
func TestRetriesTakeNoTime(t *testing.T) {
	t.Parallel()
	var at []time.Duration
	b := newBus(t, nil)
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 1}, bus.Handle(func(ctx *bus.Context, m note) error {
		at = append(at, ctx.Now().Sub(noon))
		if ctx.Info().Attempt < 3 {
			return saga.RetryAfter(time.Hour, errors.New("not now"))
		}
		return nil
	}))
	start(t, b)
	send(t, b, note{})
	advance(t, b, 24*time.Hour)
	if want := []time.Duration{0, time.Hour, 2 * time.Hour}; !slices.Equal(at, want) {
		t.Errorf("attempts at %v, want %v", at, want)
	}
}

// Steps of one instance never run at the same time, steps of different ones do, and each message has its effect.
func TestManyWorkersOnFewInstances(t *testing.T) {
	t.Parallel()
	const messages, instances = 3000, 5
	var inside [instances]atomic.Int32
	counts := saga.Define("count", saga.Options{}, saga.StartedBy(
		func(m note) string { return m.Order }, func(s *struct{ N int }, _ *saga.Context, m note) error {
			n := int(m.Order[0] - '0')
			if inside[n].Add(1) > 1 {
				t.Errorf("two steps of instance %d at the same time", n)
			}
			runtime.Gosched()
			inside[n].Add(-1)
			s.N++
			return nil
		}))
	b := newBus(t, nil)
	on(t, b, "counts", bus.EndpointOptions{Concurrency: 16}, bus.Saga(counts))
	start(t, b)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for n := g; n < messages; n += 4 {
				send(t, b, note{Order: fmt.Sprint(n % instances)})
			}
		})
	}
	all.Wait()
	advance(t, b, 0)
	for n := range instances {
		var s struct{ N int }
		i, ok, err := b.Instance(t.Context(), counts, fmt.Sprint(n), &s)
		if err != nil || !ok || s.N != messages/instances || i.Version != messages/instances {
			t.Errorf("instance %d counted %d at version %d, want %d (%v)", n, s.N, i.Version, messages/instances, err)
		}
	}
}

func TestEndpointIsRefusedWithASentence(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	on(t, b, "taken", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	for want, make := range map[string]func() error{
		"HandleTx needs a transaction of Postgres": func() error {
			_, err := memory.NewEndpoint(b, "notes", bus.EndpointOptions{}, bus.HandleTx(
				func(*bus.Context, pgx.Tx, note) error { return nil }))
			return err
		},
		"already has an endpoint of this name": func() error {
			_, err := memory.NewEndpoint(b, "taken", bus.EndpointOptions{}, bus.Handle(
				func(*bus.Context, note) error { return nil }))
			return err
		},
		"it handles no message": func() error {
			_, err := memory.NewEndpoint(b, "notes", bus.EndpointOptions{})
			return err
		},
		"StepTimeout is -1ns": func() error {
			_, err := memory.NewEndpoint(b, "notes", bus.EndpointOptions{StepTimeout: -1},
				bus.Handle(func(*bus.Context, note) error { return nil }))
			return err
		},
		"the bus is nil": func() error {
			_, err := memory.NewEndpoint(nil, "notes", bus.EndpointOptions{})
			return err
		},
		"no such manifest": func() error {
			s, err := memory.NewScheduler(b)
			if err != nil {
				return err
			}
			return s.Pause(t.Context(), "lost", "")
		},
		"this bus runs in real time": func() error {
			own, err := memory.New(memory.Options{})
			if err != nil {
				return err
			}
			return own.Advance(t.Context(), 0)
		},
		"advance by -1ns: want 0 or more": func() error { return b.Advance(t.Context(), -1) },
		"send note: context canceled": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := b.Send(ctx, note{})
			return err
		},
		"Delay is -1ns": func() error {
			s, err := memory.NewScheduler(b)
			if err == nil {
				_, err = s.Trigger(t.Context(), "lost", nil, scheduler.TriggerOptions{Delay: -1})
			}
			return err
		},
		"route of": func() error {
			_, err := memory.New(memory.Options{Routes: []bus.Routing{{Kind: "a b", Endpoint: "c"}}})
			return err
		},
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// Run drains, and cancels handlers that do not end. A message whose handler it cancelled stays, with its attempts.
func TestDrainCancelsInMemory(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	begun := make(chan struct{})
	e, err := memory.NewEndpoint(b, "notes", bus.EndpointOptions{Drain: 10 * time.Millisecond}, bus.Handle(
		func(ctx *bus.Context, _ note) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		}))
	if err == nil {
		err = e.Check(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	send(t, b, note{})
	<-begun
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := e.Run(over); !errors.Is(err, bus.ErrRunning) {
		t.Errorf("a second Run returned %v, want ErrRunning", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, bus.ErrDrain) {
		t.Errorf("Run returned %v, want ErrDrain", err)
	}
	want := []memory.Queue{{Endpoint: "notes", Ready: 1}}
	if diff := cmp.Diff(want, b.Queues()); diff != "" {
		t.Errorf("after the drain (-want +got):\n%s", diff)
	}
	if got := told.sorted(); got != "" {
		t.Errorf("after the drain it told: %s", got)
	}
}

// A handler that ends its goroutine has failed, and its worker continues.
func TestHandlerThatExitsInMemory(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 1, Policy: twice}, bus.Handle(
		func(_ *bus.Context, m note) error {
			if m.Text == "exits" {
				runtime.Goexit()
			}
			return nil
		}))
	start(t, b)
	send(t, b, note{"1", "exits"})
	send(t, b, note{"2", "stays"})
	advance(t, b, time.Minute)
	letters := b.DeadLetters()
	if len(letters) != 1 || !strings.Contains(letters[0].Error, "ended its goroutine") || letters[0].Attempts != 3 {
		t.Fatalf("dead letters: %+v", letters)
	}
	<-time.After(20 * time.Millisecond) // until the worker waits again
	if err := b.Retry(letters[0].Number); err != nil {
		t.Error(err)
	}
	if err := b.Retry(letters[0].Number); !errors.Is(err, operate.ErrNoLetter) {
		t.Errorf("a second retry returned %v", err)
	}
	advance(t, b, time.Minute)
	if again := b.DeadLetters(); len(again) != 1 || again[0].Number == letters[0].Number || again[0].Attempts != 3 {
		t.Errorf("after its retry: %+v", again)
	}
}

// A paused endpoint takes no messages, whoever paused it, and the clock does not wait for it.
func TestPausedInMemory(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	on(t, b, "questions", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { return nil }))
	start(t, b)
	if err := b.Pause("notes", "a test"); err != nil {
		t.Fatal(err)
	}
	send(t, b, note{})
	for range 100 { // the workers of both endpoints are woken each time
		send(t, b, question{})
		advance(t, b, time.Hour)
	}
	if q := b.Queues()[0]; q.Ready != 1 || q.Paused != "a test" {
		t.Errorf("paused: %+v", q)
	}
	<-time.After(20 * time.Millisecond) // until the worker waits again
	if err := b.Resume("notes"); err != nil {
		t.Fatal(err)
	}
	advance(t, b, 0)
	if !told.has("notes: handled note") {
		t.Error("resumed, and nothing was handled")
	}
	if err := b.Resume("nothing"); !errors.Is(err, bus.ErrNotInstalled) {
		t.Errorf("an endpoint that is not there: %v", err)
	}
}

// A week of a manifest, in no time. Its follower fires after each run, and a run that takes too long is timed out.
func TestScheduleInMemory(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, nil)
	s, err := memory.NewScheduler(b,
		scheduler.Manifest{Name: "night", When: scheduler.Cron("0 3 * * *", "UTC"), Message: note{"", "night"}},
		scheduler.Manifest{Name: "report", When: scheduler.After("night"), Message: note{"", "report"}},
		scheduler.Manifest{Name: "away", When: scheduler.OnDemand(), Message: note{"", "away"}, Retries: -1,
			Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m note) error {
		told.say("%s %v %s", m.Text, ctx.Now().Format("02 15:04"), ctx.Info().Firing.Due.Format("15:04"))
		if m.Text == "away" {
			ctx.LeaveRun()
		}
		return nil
	}))
	start(t, b)
	advance(t, b, 48*time.Hour)
	want := "night 02 03:00 03:00\nnight 03 03:00 03:00\nreport 02 03:00 03:00\nreport 03 03:00 03:00"
	if diff := cmp.Diff(want, told.sorted()); diff != "" {
		t.Errorf("two nights (-want +got):\n%s", diff)
	}
	away := func() saga.ID {
		id, err := s.Trigger(t.Context(), "away", nil, scheduler.TriggerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		advance(t, b, time.Second)
		if run, err := s.RunOf(t.Context(), id); err != nil || run.State != scheduler.RunActive {
			t.Fatalf("a run that its handler left is %s (%v)", run.State, err)
		}
		return id
	}
	state := func(id saga.ID) scheduler.RunState {
		run, err := s.RunOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return run.State
	}
	first := away()
	if err := s.End(t.Context(), first, 1, nil); err != nil || state(first) != scheduler.RunSucceeded {
		t.Errorf("a run that has ended elsewhere is %s (%v)", state(first), err)
	}
	second := away()
	if advance(t, b, time.Minute); state(second) != scheduler.RunTimedOut {
		t.Errorf("a run of which nothing was heard is %s", state(second))
	}
	if all, err := s.RunsOf(t.Context(), "away"); err != nil || len(all) != 2 || all[0].ID != first {
		t.Errorf("runs: %+v (%v)", all, err)
	}
}

// Rows S3-56 and S3-69: the bus reports that there is one replica. Its loop begins at once without a lease, and nothing
// is renewed while the clock stands.
func TestSingleReplicaTakesNoLease(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	terms := make(chan scheduler.Term)
	loop, err := memory.NewSingleton(b, "loop", func(term scheduler.Term) error {
		terms <- term
		<-term.Done()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := memory.NewSingleton(b, "loop", func(scheduler.Term) error { return nil }); err == nil {
		t.Error("there are two of one name")
	}
	start(t, b)
	var term scheduler.Term
	select {
	case term = <-terms:
	case <-time.After(pgdev.Patience(10 * time.Second)):
		t.Fatal("the singleton does not begin")
	}
	if err := term.Guard(term, nil); term.Epoch() != 1 || err == nil {
		t.Errorf("the term has epoch %d, and guards a transaction of no database: %v", term.Epoch(), err)
	}
	if err := loop.Run(t.Context()); !errors.Is(err, scheduler.ErrRunning) {
		t.Errorf("a second Run: %v", err)
	}
	advance(t, b, 24*time.Hour)
	if term.Err() != nil || !b.SingleReplica() {
		t.Errorf("a day later the term is %v; one replica: %v", term.Err(), b.SingleReplica())
	}
}

// Row S0-32: the run exists before its handler begins, and when Trigger and Advance have returned, the handler has.
func TestRunIsThereBeforeItsHandler(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	var s *memory.Scheduler
	seen := scheduler.RunInfo{}
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ note) (err error) {
		seen, err = s.RunOf(ctx, ctx.Info().Firing.Run)
		return err
	}))
	s, err := memory.NewScheduler(b, scheduler.Manifest{Name: "m", When: scheduler.OnDemand(), Message: note{}})
	if err != nil {
		t.Fatal(err)
	}
	start(t, b)
	id, err := s.Trigger(t.Context(), "m", note{Text: "now"}, scheduler.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	advance(t, b, 0)
	if seen.ID != id || seen.State != scheduler.RunActive || seen.Attempt != 1 {
		t.Errorf("the handler saw %+v", seen)
	}
	if run, err := s.RunOf(t.Context(), id); err != nil || run.State != scheduler.RunSucceeded {
		t.Errorf("after Advance the run is %s (%v)", run.State, err)
	}
}

// A policy or a handler may call the bus without a deadlock.
func TestUsersFunctionsMayCallTheBus(t *testing.T) {
	t.Parallel()
	var b *memory.Bus
	b = newBus(t, func(event.Event) { b.Queues() })
	on(t, b, "notes", bus.EndpointOptions{Policy: nil}, bus.Handle(func(ctx *bus.Context, m note) error {
		if _, err := b.Send(ctx, question{m.Text}); err != nil {
			return err
		}
		ctx.Send(question{"taken"}, saga.WithID(saga.ID{15: 1}))
		return nil
	}))
	on(t, b, "questions", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { b.Now(); return nil }))
	start(t, b)
	send(t, b, question{"first"}, saga.WithID(saga.ID{15: 1}))
	send(t, b, note{})
	advance(t, b, time.Hour)
	if letters := b.DeadLetters(); len(letters) != 1 || letters[0].Reason != "permanent" {
		t.Errorf("dead letters: %+v", letters)
	}
}

// A message whose key is being read does not overtake a message that has waited for the key.
func TestKeyThatIsBeingReadDoesNotOvertake(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, nil)
	begun, finish := make(chan struct{}), make(chan struct{})
	reading, read := make(chan struct{}), make(chan struct{})
	var got []string // guarded by told.mu
	on(t, b, "notes", bus.EndpointOptions{Ordered: bus.Overtaking}, bus.Handle(
		func(_ *bus.Context, m note) error {
			told.mu.Lock()
			got = append(got, m.Text)
			told.mu.Unlock()
			if m.Text == "0" {
				close(begun)
				<-finish
			}
			return nil
		}, bus.KeyedBy(func(m note) string {
			if m.Text == "2" {
				select {
				case reading <- struct{}{}:
					<-read
				case <-read: // the key is read again after the wait
				}
			}
			return "7"
		})))
	start(t, b)
	send(t, b, note{"7", "0"})
	<-begun
	send(t, b, note{"7", "1"})
	send(t, b, note{"7", "2"})
	<-reading // one message is read at a time, so 1 waits
	close(finish)
	for b.Queues()[0].InHand != 1 { // 0 has ended; 1 is ready, and 2 is being read
		runtime.Gosched()
	}
	close(read)
	advance(t, b, 0)
	if want := []string{"0", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("handled %v, want %v", got, want)
	}
}

// A timeout that was cancelled, or whose saga has completed, leaves its queue.
func TestCancelledTimeoutLeavesItsQueueInMemory(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	s := &scene{T: t, teller: told}
	on(t, b, "orders", bus.EndpointOptions{}, bus.Saga(shop(time.Hour, saga.Options{})))
	on(t, b, "payment", bus.EndpointOptions{}, payment(s))
	start(t, b)
	send(t, b, place7{"7"})
	advance(t, b, 0)
	if got := b.Queues()[0]; got != (memory.Queue{Endpoint: "orders"}) {
		t.Errorf("after the end: %+v", got)
	}
	if n := b.Timers("orders"); n != 0 {
		t.Errorf("%d timeouts are remembered that nothing waits for", n)
	}
}

// A message that its handler leaves is taken again after a Poll of the bus's clock, and not before.
func TestLeftMessageWaitsForThePollInMemory(t *testing.T) {
	t.Parallel()
	var calls, batches atomic.Int32
	b := newBus(t, func(e event.Event) {
		if _, ok := e.(event.BatchDone); ok {
			batches.Add(1)
		}
	})
	on(t, b, "raw", bus.EndpointOptions{Poll: time.Hour}, bus.HandleRaw(func(*bus.Context, *saga.Delivery) error {
		if calls.Add(1) < 3 {
			return bus.ErrLeave
		}
		return nil
	}, "note"))
	start(t, b)
	send(t, b, note{})
	for halves, want := range []int32{1, 1, 2, 2, 3} {
		advance(t, b, 30*time.Minute*time.Duration(min(halves, 1)))
		if got := calls.Load(); got != want {
			t.Errorf("after %d half hours it was called %d times, want %d", halves, got, want)
		}
	}
	if n := batches.Load(); n != 1 {
		t.Errorf("%d batches are done, want that in which the message was handled", n)
	}
	calls.Store(0)
	send(t, b, note{})
	if advance(t, b, 2*time.Hour); calls.Load() != 3 {
		t.Errorf("in two hours at once it was called %d times, want 3", calls.Load())
	}
}

// Ids older than seven days are forgotten, and younger ones are not.
func TestOldIDsAreForgottenInMemory(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	for n := range 20_001 {
		if n == 10_000 {
			advance(t, b, 7*24*time.Hour+time.Microsecond)
		}
		id := saga.ID{0: 1, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
		if _, err := b.Publish(t.Context(), question{}, saga.WithID(id)); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.Given(); n != 10_001 {
		t.Errorf("%d ids are known, want those of the last 7 days, which are 10001", n)
	}
}

// If a step gave an id to a message that was not sent after all, the id is free.
func TestIDOfAFailedStepIsFreeInMemory(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ note) error {
		ctx.Send(question{"free"}, saga.WithID(saga.ID{15: 1}))
		ctx.Publish(answer{"unwanted"}, saga.WithID(saga.ID{15: 3}))
		ctx.Send(question{"taken"}, saga.WithID(saga.ID{15: 2}))
		return nil
	}))
	on(t, b, "questions", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { return nil }))
	start(t, b)
	send(t, b, question{"first"}, saga.WithID(saga.ID{15: 2}))
	send(t, b, note{})
	advance(t, b, 0)
	if letters := b.DeadLetters(); len(letters) != 1 {
		t.Fatalf("dead letters: %+v", letters)
	}
	send(t, b, question{"another"}, saga.WithID(saga.ID{15: 1}))
	sent, err := b.Publish(t.Context(), answer{"another"}, saga.WithID(saga.ID{15: 3}))
	if err != nil || sent.Duplicate {
		t.Errorf("the id of an event that nobody wanted: %+v (%v)", sent, err)
	}
	advance(t, b, 7*24*time.Hour)
	again, err := b.Send(t.Context(), question{"another"}, saga.WithID(saga.ID{15: 1}))
	if err != nil || !again.Duplicate {
		t.Errorf("an id of seven days ago: %+v (%v)", again, err)
	}
	advance(t, b, 24*time.Hour)
	if sent, err := b.Send(t.Context(), question{"later"}, saga.WithID(saga.ID{15: 1})); err != nil || sent.Duplicate {
		t.Errorf("an id of last week: %+v (%v)", sent, err)
	}
}

// The message of a cancelled run is not handled. If a run ends before its handler, that sends nothing.
func TestRunThatIsOverInMemory(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	s, err := memory.NewScheduler(b, scheduler.Manifest{Name: "m", When: scheduler.OnDemand(), Message: note{}})
	if err != nil {
		t.Fatal(err)
	}
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m note) error {
		told.say("handled %s", m.Text)
		ctx.Send(question{m.Text})
		return s.Cancel(ctx, ctx.Info().Firing.Run, "")
	}))
	on(t, b, "questions", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { return nil }))
	start(t, b)
	trigger := func(text string) saga.ID {
		id, err := s.Trigger(t.Context(), "m", note{Text: text}, scheduler.TriggerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if err := b.Pause("notes", "a test"); err != nil {
		t.Fatal(err)
	}
	if err := s.Cancel(t.Context(), trigger("before"), ""); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume("notes"); err != nil {
		t.Fatal(err)
	}
	advance(t, b, 0)
	during := trigger("during")
	advance(t, b, 0)
	want := "handled during\nnotes: discarded note: its run is over\nnotes: discarded note: its run is over\n" +
		"notes: paused: a test"
	if diff := cmp.Diff(want, told.sorted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if run, err := s.RunOf(t.Context(), during); err != nil || run.State != scheduler.RunCancelled {
		t.Errorf("a run that its handler has cancelled is %s (%v)", run.State, err)
	}
}

// With real time, too, a run that falls due at the same time as a change is handled.
func TestRunThatFallsDueBesideAChange(t *testing.T) {
	t.Parallel()
	b, err := memory.New(memory.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{}, 1)
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 1}, bus.Handle(func(*bus.Context, note) error {
		handled <- struct{}{}
		return nil
	}))
	on(t, b, "other", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { return nil }))
	s, err := memory.NewScheduler(b, scheduler.Manifest{Name: "m", When: scheduler.OnDemand(), Message: note{}})
	if err != nil {
		t.Fatal(err)
	}
	start(t, b)
	for range 200 {
		id, err := s.Trigger(t.Context(), "m", nil, scheduler.TriggerOptions{Delay: 800 * time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.RunOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for time.Now().Before(run.Ready.Add(-15 * time.Microsecond)) {
			runtime.Gosched()
		}
		if err := b.Pause("other", ""); err != nil { // a change just before the run is due
			t.Fatal(err)
		}
		select {
		case <-handled:
		case <-time.After(10 * time.Second):
			t.Fatalf("it was not handled; the queues are %+v", b.Queues())
		}
	}
}

// Start returns the error of a runner that could not begin.
func TestStartReturnsWhatFails(t *testing.T) {
	t.Parallel()
	b, running := newBus(t, nil), make(chan struct{})
	e, err := memory.NewEndpoint(b, "a", bus.EndpointOptions{}, bus.Handle(
		func(*bus.Context, note) error { close(running); return nil }))
	if err == nil {
		err = e.Check(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	on(t, b, "b", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { return nil }))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	if _, err := b.Send(ctx, note{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-running:
	case <-time.After(pgdev.Patience(10 * time.Second)):
		t.Fatal("no message was handled")
	}
	if _, err := b.Start(t.Context()); !errors.Is(err, bus.ErrRunning) {
		t.Errorf("Start returned %v, want ErrRunning", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Users' errors and loggers may call the bus: they are not called under its mutex.
func TestErrorsAndLoggersMayCallTheBus(t *testing.T) {
	t.Parallel()
	var b *memory.Bus
	call := func() {
		answered := make(chan struct{})
		go func() { b.Now(); close(answered) }()
		select {
		case <-answered:
		case <-time.After(pgdev.Patience(5 * time.Second)):
			t.Error("the bus does not answer an error or a logger")
		}
	}
	logger := slog.New(calls{slog.DiscardHandler, call})
	b, err := memory.New(memory.Options{Start: noon, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memory.NewScheduler(b, scheduler.Manifest{Name: "m", When: scheduler.OnDemand(), Message: question{}})
	if err != nil {
		t.Fatal(err)
	}
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error {
		return saga.Permanent(asking{call})
	}))
	start(t, b)
	send(t, b, note{})
	id, err := s.Trigger(t.Context(), "m", nil, scheduler.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	advance(t, b, time.Hour)
	if run, err := s.RunOf(t.Context(), id); err != nil || run.State != scheduler.RunDead || run.Refused != 5 {
		t.Errorf("a run that nobody handles: %+v (%v)", run, err)
	}
	if letters := b.DeadLetters(); len(letters) != 1 || letters[0].Error != "it has asked" {
		t.Errorf("dead letters: %+v", letters)
	}
}

type calls struct {
	slog.Handler
	call func()
}

func (c calls) Enabled(context.Context, slog.Level) bool { return true }

func (c calls) Handle(context.Context, slog.Record) error { c.call(); return nil }

type asking struct{ ask func() }

func (a asking) Error() string { a.ask(); return "it has asked" }

// While the clock stands, messages arrive in the order of their sends, and a retry after them.
func TestOrderWhileTheClockStands(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	var got []string
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 1, Policy: twice}, bus.Handle(
		func(_ *bus.Context, m note) error {
			got = append(got, m.Text)
			if m.Text == "A" {
				return errors.New("no")
			}
			return nil
		}))
	start(t, b)
	if err := b.Pause("notes", ""); err != nil {
		t.Fatal(err)
	}
	send(t, b, note{"7", "A"}, saga.WithID(saga.ID{0: 9}))
	send(t, b, note{"7", "B"}, saga.WithID(saga.ID{0: 8}))
	send(t, b, note{"7", "C"}, saga.WithID(saga.ID{0: 7}))
	if err := b.Resume("notes"); err != nil {
		t.Fatal(err)
	}
	advance(t, b, time.Hour)
	if want := "A B C A A"; strings.Join(got, " ") != want {
		t.Errorf("handled %v, want %s", got, want)
	}
}

// Messages that wait for one instance are not examined again and again.
func TestManyWaitForOneInstance(t *testing.T) {
	t.Parallel()
	const n = 20_000
	b := newBus(t, nil)
	hold := make(chan struct{})
	counts := saga.Define("count", saga.Options{}, saga.StartedBy(func(m note) string { return m.Order },
		func(s *struct{ N int }, _ *saga.Context, _ note) error { <-hold; s.N++; return nil }))
	on(t, b, "counts", bus.EndpointOptions{Concurrency: 4}, bus.Saga(counts))
	start(t, b)
	for range n {
		send(t, b, note{"7", ""})
	}
	for b.Queues()[0].Ready > 0 {
		runtime.Gosched()
	}
	if q := b.Queues()[0]; q.InHand != n {
		t.Errorf("%d of %d messages are in hand, or behind one that is", q.InHand, n)
	}
	close(hold)
	advance(t, b, 0)
	if i, _, err := b.Instance(t.Context(), counts, "7", nil); err != nil || i.Version != n {
		t.Errorf("the instance is at version %d, want %d (%v)", i.Version, n, err)
	}
}

// A dead letter that is retried counts as sent anew: it does not expire at once.
func TestRetriedLetterHasNotExpired(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	failed := false
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 1}, bus.Handle(func(*bus.Context, note) error {
		if !failed {
			failed = true
			return saga.Permanent(errors.New("no"))
		}
		return nil
	}))
	start(t, b)
	send(t, b, note{}, saga.Expire(time.Hour))
	advance(t, b, 2*time.Hour)
	if err := b.Retry(b.DeadLetters()[0].Number); err != nil {
		t.Fatal(err)
	}
	advance(t, b, 0)
	if !told.has("notes: handled note") {
		t.Error(told.sorted())
	}
}
