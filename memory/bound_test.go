package memory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/go-cmp/cmp"
)

// once makes a dead letter of each failure.
var once = recoverability.Always(recoverability.DeadLetter())

// A handler has StepTimeout of real time, and its message dies by the clock of the bus.
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

// The pauses of a run whose attempts fail double, up to RetryMost.
func TestPausesOfARunInMemoryEndAtRetryMost(t *testing.T) {
	t.Parallel()
	b := newBus(t, nil)
	s, err := memory.NewScheduler(b, scheduler.Manifest{Name: "night", When: scheduler.OnDemand(),
		Message: note{"", "night"}, Retries: 5, RetryDelay: time.Second, RetryMost: 3 * time.Second})
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
