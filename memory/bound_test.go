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
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/go-cmp/cmp"
)

// once makes a dead letter of each failure.
var once = recoverability.Always(recoverability.DeadLetter())

// StepTimeout of a handler is real time, and its message dies by the clock of the bus.
func TestAHandlerInMemoryHasStepTimeout(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	on(t, b, "notes", bus.EndpointOptions{StepTimeout: 20 * time.Millisecond, Policy: once}, bus.Handle(
		func(ctx *bus.Context, _ note) error {
			return run.Sleep(ctx, pgdev.Patience(time.Second))
		}))
	start(t, b)
	advance(t, b, time.Hour)
	send(t, b, note{})
	advance(t, b, time.Hour)
	letters := b.DeadLetters()
	if len(letters) != 1 || !strings.Contains(letters[0].Error, "longer than StepTimeout") ||
		!letters[0].Died.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", letters)
	}
}

// The pauses of a run whose attempts fail double, up to MaxRetryDelay.
func TestPausesOfARunInMemoryEndAtRetryMost(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	s, err := memory.NewScheduler(b, scheduler.Manifest{Name: "night", When: scheduler.OnDemand(),
		Message: note{"", "night"}, Retries: 5, RetryDelay: time.Second, MaxRetryDelay: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	last := noon
	on(t, b, "notes", bus.EndpointOptions{Policy: once}, bus.Handle(func(ctx *bus.Context, _ note) error {
		pauses, last = append(pauses, ctx.Now().Sub(last)), ctx.Now()
		return errors.New("it fails")
	}))
	start(t, b)
	if _, err := s.Trigger(t.Context(), "night", nil, scheduler.TriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	advance(t, b, time.Hour)
	second := time.Second
	want := []time.Duration{0, second, 2 * second, 3 * second, 3 * second, 3 * second}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

// A stop does not wait for a handler that never returns.
func TestRunInMemoryEndsWithoutAHandlerThatNeverReturns(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	begun, returns := make(chan struct{}), make(chan struct{})
	e, err := memory.NewEndpoint(b, "notes", bus.EndpointOptions{Drain: 10 * time.Millisecond}, bus.Handle(
		func(*bus.Context, note) error {
			close(begun)
			<-returns
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, b, note{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	<-begun
	cancel()
	if err := <-ended; !errors.Is(err, run.ErrDrain) ||
		!strings.Contains(err.Error(), "not waited for: "+note{}.Kind()) {
		t.Errorf("Run returned %v", err)
	}
	if err := e.Run(ctx); !errors.Is(err, bus.ErrRunning) {
		t.Errorf("another Run, while the handler runs: %v", err)
	}
	close(returns)
	for errors.Is(e.Run(ctx), bus.ErrRunning) {
	}
}

// All of many missed firings come, in more steps than one change of the bus takes.
func TestManyMissedFirings(t *testing.T) {
	t.Parallel()
	const missed = 2500
	b := newBus(t, nil)
	_, err := memory.NewScheduler(b, scheduler.Manifest{Name: "m", When: scheduler.Every(time.Second),
		Message: note{}, Overlap: true, Misfire: scheduler.MisfireAll, MisfireUp: missed})
	if err != nil {
		t.Fatal(err)
	}
	var handled atomic.Int64
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ note) error {
		ctx.LeaveRun() // its end would be a second change
		handled.Add(1)
		return nil
	}))
	advance(t, b, 3000*time.Second) // no endpoint is running
	start(t, b)
	advance(t, b, 0)
	if got := handled.Load(); got != missed {
		t.Errorf("%d firings came, want %d", got, missed)
	}
}

// A cancelled timeout leaves its queue, and its neighbours stay.
func TestCancelledTimeoutIsTheOneThatLeaves(t *testing.T) {
	t.Parallel()
	var came []string
	b := newBus(t, nil)
	on(t, b, "orders", bus.EndpointOptions{}, bus.Saga(saga.Define("order", saga.Options{},
		saga.StartedBy(byOrder, func(_ *order, ctx *saga.Context, _ place7) error {
			for n, name := range []string{"third", "second", "first"} {
				ctx.Timeout(time.Duration(3-n)*time.Hour, overdue{name}, saga.Named(name))
			}
			return nil
		}),
		saga.Handles(func(m note) string { return m.Order }, func(_ *order, ctx *saga.Context, m note) error {
			ctx.CancelTimeout(m.Text)
			return nil
		}),
		saga.OnTimeout(func(_ *order, _ *saga.Context, m overdue) error { came = append(came, m.Why); return nil }))))
	start(t, b)
	send(t, b, place7{"7"})
	advance(t, b, 0)
	send(t, b, note{"7", "third"})
	advance(t, b, 4*time.Hour)
	if want := []string{"first", "second"}; !slices.Equal(came, want) {
		t.Errorf("the timeouts %v have come, want %v", came, want)
	}
}

// An endpoint runs as many handlers at the same time as the smaller of its two limits.
func TestSmallerLimitOfHandlersHolds(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]bus.EndpointOptions{
		"Concurrency":        {Concurrency: 2, ClusterConcurrency: 5},
		"ClusterConcurrency": {Concurrency: 5, ClusterConcurrency: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t, nil)
			begun, finish := make(chan struct{}), make(chan struct{})
			on(t, b, "notes", o, bus.Handle(func(*bus.Context, note) error {
				select {
				case begun <- struct{}{}:
					<-finish
				case <-finish:
				}
				return nil
			}))
			start(t, b)
			for range 5 {
				send(t, b, note{})
			}
			<-begun
			<-begun
			select {
			case <-begun:
				t.Error("a third handler runs beside two")
			case <-time.After(pgdev.Patience(100 * time.Millisecond)):
			}
			close(finish)
			advance(t, b, 0)
		})
	}
}

// When the first endpoint begins, messages may be sent to all endpoints.
func TestAllEndpointsAreKnownBeforeOneBegins(t *testing.T) {
	t.Parallel()
	const endpoints = 20
	var b *memory.Bus
	first := sync.OnceFunc(func() {
		if n := len(b.Queues()); n != endpoints {
			t.Errorf("when the first endpoint begins %d are known, want %d", n, endpoints)
		}
	})
	b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(calls{slog.DiscardHandler, first})})
	if err != nil {
		t.Fatal(err)
	}
	for n := range endpoints {
		on(t, b, fmt.Sprint("notes-", n), bus.EndpointOptions{}, bus.Handle(
			func(*bus.Context, note) error { return nil }))
	}
	start(t, b)
}

// meddling is a codec that changes the bytes that it has decoded.
type meddling struct {
	saga.Codec
	after func([]byte)
}

func (m meddling) Decode(body []byte, into any) error {
	defer m.after(body)
	return m.Codec.Decode(body, into)
}

// A codec may change the bytes that it gets, and be too slow once: the next attempt reads the original bytes.
func TestNextAttemptReadsTheMessageAnew(t *testing.T) {
	t.Parallel()
	most := pgdev.Patience(100 * time.Millisecond)
	slow := sync.OnceFunc(func() { <-time.After(2 * most) })
	for name, after := range map[string]func([]byte){
		"spoils":      func(body []byte) { clear(body) },
		"is too slow": func([]byte) { slow() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := &teller{}
			b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler), Events: told.hear,
				Codec: meddling{saga.JSON, after}})
			if err != nil {
				t.Fatal(err)
			}
			on(t, b, "notes", bus.EndpointOptions{StepTimeout: most, Policy: twice}, bus.Saga(saga.Define("order",
				saga.Options{}, saga.StartedBy(func(m note) string { return m.Order },
					func(_ *order, ctx *saga.Context, m note) error {
						if ctx.Info().Attempt == 1 {
							told.say("first")
							return errors.New("not yet")
						}
						told.say("handled %s", m.Text)
						return nil
					}))))
			start(t, b)
			send(t, b, note{"7", "x"})
			advance(t, b, time.Hour)
			if !told.has("handled x") || told.has("first") != (name == "spoils") {
				t.Error(told.sorted())
			}
		})
	}
}

// The newest ten thousand discarded messages are returned, and at most twice as many are kept.
func TestDiscardedMessagesHaveABound(t *testing.T) {
	t.Parallel()
	const shown = 10_000
	b := newBus(t, nil)
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 1}, bus.Handle(
		func(*bus.Context, note) error { return saga.Discard("") }))
	start(t, b)
	for range 2*shown + 1 {
		send(t, b, note{})
	}
	advance(t, b, 0)
	all := b.Discarded()
	if kept := b.Kept(); len(all) != shown || all[0].Number != shown+2 || kept != shown {
		t.Errorf("of %d messages %d are kept, and %d shown, the first of them %d", 2*shown+1, kept, len(all),
			all[0].Number)
	}
	send(t, b, note{})
	advance(t, b, 0)
	if all, kept := b.Discarded(), b.Kept(); len(all) != shown || all[0].Number != shown+3 || kept != shown+1 {
		t.Errorf("of one more %d are kept, and %d shown, the first of them %d", kept, len(all), all[0].Number)
	}
}

// A second pause, and a second resume, change nothing and emit no event.
func TestPauseIsToldOnce(t *testing.T) {
	t.Parallel()
	var told []string
	b := newBus(t, func(e event.Event) {
		switch e := e.(type) {
		case event.Paused:
			told = append(told, "paused: "+e.Reason)
		case event.Resumed:
			told = append(told, "resumed")
		}
	})
	on(t, b, "notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	start(t, b)
	for _, do := range []func() error{
		func() error { return b.Pause("notes", "first") }, func() error { return b.Pause("notes", "second") },
		func() error { return b.Resume("notes") }, func() error { return b.Resume("notes") },
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"paused: first", "resumed"}; !slices.Equal(told, want) {
		t.Errorf("told was %q, want %q", told, want)
	}
}

// A handler that outlives its attempt does not affect the next attempt's handler, which is cancelled with the run.
func TestNextAttemptOfARunIsCancelledToo(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	manifests := []scheduler.Manifest{{Name: "m", When: scheduler.OnDemand(), Message: note{}}}
	s, err := memory.NewScheduler(b, manifests...)
	if err != nil {
		t.Fatal(err)
	}
	if _, same := manifests[0].Message.(note); !same {
		t.Errorf("the message of the caller's manifest is now %v", manifests[0].Message)
	}
	begun, finish := make(chan int, 2), make(chan struct{})
	first, causes := make(chan struct{}), make(chan error, 2)
	on(t, b, "notes", bus.EndpointOptions{Concurrency: 2}, bus.Handle(func(ctx *bus.Context, _ note) error {
		attempt := ctx.Info().Firing.Attempt
		begun <- attempt
		if attempt == 1 {
			<-first
			return nil
		}
		select {
		case <-ctx.Done():
		case <-finish:
		}
		causes <- context.Cause(ctx)
		return nil
	}))
	start(t, b)
	id, err := s.Trigger(t.Context(), "m", nil, scheduler.TriggerOptions{})
	if err == nil {
		<-begun
		err = errors.Join(s.Cancel(t.Context(), id, ""), s.Retry(t.Context(), id, ""))
	}
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	close(first)
	for b.Queues()[0].InHand > 1 {
		runtime.Gosched()
	}
	if err := s.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(pgdev.Patience(5*time.Second), func() { close(finish) })
	if err := <-causes; !errors.Is(err, bus.ErrCancelled) {
		t.Errorf("the second handler ends by %v", err)
	}
	advance(t, b, 0)
}

// If a message that was woken for an instance has expired, the next one is woken.
func TestWokenMessageThatExpiresLetsOthersCome(t *testing.T) {
	t.Parallel()
	told := &teller{}
	b := newBus(t, told.hear)
	begun, finish := make(chan struct{}), make(chan struct{})
	on(t, b, "orders", bus.EndpointOptions{Concurrency: 2}, bus.Saga(saga.Define("order", saga.Options{},
		saga.StartedBy(byOrder, func(*order, *saga.Context, place7) error {
			close(begun)
			<-finish
			return nil
		}),
		saga.Handles(func(m note) string { return m.Order }, func(*order, *saga.Context, note) error { return nil }))))
	on(t, b, "other", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, question) error { return nil }))
	start(t, b)
	send(t, b, place7{"7"})
	<-begun
	send(t, b, note{"7", "expires"}, saga.Expire(time.Minute))
	send(t, b, note{"7", "stays"})
	for b.Queues()[0].Ready > 0 {
		runtime.Gosched()
	}
	b.Jump(time.Hour)
	close(finish)
	advance(t, b, 0)
	if !told.has("orders: discarded note: expired") || !told.has("orders: handled note by order/7") {
		t.Error(told.sorted())
	}
}
