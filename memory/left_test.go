package memory_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// A function that never returns costs its message an attempt but no worker, and Advance returns.
func TestAFunctionInMemoryThatNeverReturnsIsLeft(t *testing.T) {
	t.Parallel()
	returns := make(chan struct{})
	for name, part := range map[string]func(hang func()) bus.Part{
		"the handler did not return": func(hang func()) bus.Part {
			return bus.Handle(func(*bus.Context, note) error { hang(); return nil })
		},
		"decoding it: a function of the program has not returned": func(hang func()) bus.Part {
			return bus.Saga(saga.Define("notes", saga.Options{}, saga.StartedBy(
				func(note) string { hang(); return "k" },
				func(*struct{}, *saga.Context, note) error { return nil })))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t, nil)
			var calls atomic.Int64
			on(t, b, "notes", bus.EndpointOptions{StepTimeout: 500 * time.Millisecond, Policy: once, Concurrency: 1},
				part(func() {
					if calls.Add(1) == 1 {
						<-returns
					}
				}))
			start(t, b)
			send(t, b, note{})
			send(t, b, note{})
			within, cancel := context.WithTimeout(t.Context(), pgdev.Patience(10*time.Second))
			defer cancel()
			if err := b.Advance(within, time.Hour); err != nil {
				t.Fatal(err)
			}
			letters := b.DeadLetters()
			if len(letters) != 1 || !strings.Contains(letters[0].Error, name) || calls.Load() != 2 {
				t.Errorf("%d calls; %+v", calls.Load(), letters)
			}
		})
	}
	t.Cleanup(func() { close(returns) })
}

// A stop does not wait for the function of a singleton that never returns, and the error names it.
func TestRunInMemoryEndsWithoutASingletonThatNeverReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, returns := newBus(t, nil), make(chan struct{})
		s, err := memory.NewSingleton(b, "sweeper", func(scheduler.Term) error { <-returns; return nil })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begun := time.Now()
		if err := s.Run(ctx); !errors.Is(err, bus.ErrDrain) ||
			!strings.Contains(err.Error(), "not waited for: the function of singleton/sweeper") {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(begun) - time.Minute; took != 32*time.Second {
			t.Errorf("it returned %v after the end of its context", took)
		}
		if err := s.Run(ctx); !errors.Is(err, scheduler.ErrRunning) {
			t.Errorf("another Run, while the function runs: %v", err)
		}
		close(returns)
	})
}
