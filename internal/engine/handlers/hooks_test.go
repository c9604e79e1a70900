package handlers_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/saga"
)

type (
	work   = func(context.Context)
	around = func(context.Context, *event.Transaction, work)
)

var silent = slog.New(slog.DiscardHandler)

// The transaction is run once, and its caller continues, whatever the hook does.
func TestAroundRunsOnce(t *testing.T) {
	for name, f := range map[string]around{
		"as it should":  func(ctx context.Context, _ *event.Transaction, run work) { run(ctx) },
		"twice":         func(ctx context.Context, _ *event.Transaction, run work) { run(ctx); run(ctx) },
		"not at all":    func(context.Context, *event.Transaction, work) {},
		"after a panic": func(context.Context, *event.Transaction, work) { panic("no tracer") },
		"and panics":    func(ctx context.Context, _ *event.Transaction, run work) { run(ctx); panic("no tracer") },
		"in a deferred call": func(ctx context.Context, _ *event.Transaction, run work) {
			defer run(ctx)
			panic("no tracer")
		},
		"and exits": func(ctx context.Context, _ *event.Transaction, run work) {
			run(ctx)
			runtime.Goexit()
		},
		"exits": func(context.Context, *event.Transaction, work) { runtime.Goexit() },
		"before it never returns": func(ctx context.Context, _ *event.Transaction, run work) {
			run(ctx)
			forLong()
		},
		"after it never returns": func(context.Context, *event.Transaction, work) {
			forLong()
		},
		"much too late": func(ctx context.Context, _ *event.Transaction, run work) {
			forLong()
			run(ctx)
			panic(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, calls := handlers.NewAround(f, silent), 0
				begin, returned := time.Now(), false
				run.Call(func() {
					for range 3 {
						a.Do(t.Context(), &event.Transaction{}, func(context.Context) { calls++ })
					}
					returned = true
				})
				took := time.Since(begin)
				<-time.After(2 * time.Hour) // for the goroutine of a hook that has not returned
				if calls != 3 || !returned || took > 2*handlers.Patience {
					t.Errorf("three transactions ran %d times, returned %v, after %v", calls, returned, took)
				}
			})
		})
	}
	if handlers.NewAround(nil, silent) != nil {
		t.Error("no hook makes one")
	}
}

// forLong sleeps longer than any caller waits.
func forLong() { <-time.After(time.Hour) }

// A panic in Edda's own code is not the hook's, nor is the end of its goroutine.
func TestWorkEndsItsCallerUnderAround(t *testing.T) {
	recovers := handlers.NewAround(func(ctx context.Context, _ *event.Transaction, run work) {
		defer func() { _ = recover() }()
		run(ctx)
	}, silent)
	func() {
		defer func() {
			if v := recover(); v != "a fault of Edda" {
				t.Errorf("recovered %v, want the panic", v)
			}
		}()
		recovers.Do(t.Context(), &event.Transaction{}, func(context.Context) { panic("a fault of Edda") })
	}()
	if run.Call(func() {
		recovers.Do(t.Context(), &event.Transaction{}, func(context.Context) { runtime.Goexit() })
	}) {
		t.Error("work has ended its goroutine, and the caller went on")
	}
}

// Rare gets every event except Handled, and a receiver that fails takes no event from the other, nor from itself.
func TestReceivers(t *testing.T) {
	for name, fail := range map[string]func(){
		"returns": func() {}, "panics": func() { panic("no such label") }, "ends its goroutine": runtime.Goexit,
	} {
		var all, rare []event.Event
		r := handlers.Receivers{
			Log: silent, Rare: func(e event.Event) { rare = append(rare, e) },
			Events: func(e event.Event) { all = append(all, e); fail() },
		}
		r.Emit(event.Handled{})
		r.Emit(event.BatchDone{}, event.Handled{}, event.Resumed{})
		if len(all) != 4 || len(rare) != 2 {
			t.Errorf("it %s: Events has %d and Rare %d, want 4 and 2", name, len(all), len(rare))
		}
	}
}

// A guest that does not return delays its caller by the patience once, and is not called until it has returned.
func TestAskGoesOnWithoutItsGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, calls := &handlers.Guest{}, new(atomic.Int32)
		ask := func(f func()) error {
			_, err := handlers.Ask(g, time.Second, func() int { calls.Add(1); f(); return 7 })
			return err
		}
		begin := time.Now()
		for range 3 {
			if err := ask(func() { <-time.After(time.Minute) }); !errors.Is(err, handlers.ErrAway) {
				t.Error(err)
			}
		}
		if took := time.Since(begin); calls.Load() != 1 || took != time.Second {
			t.Errorf("it was called %d times, and its caller waited for %v", calls.Load(), took)
		}
		<-time.After(time.Minute)
		var panicked *saga.PanicError
		if err := ask(func() { panic("no") }); !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
			t.Error(err)
		}
		if err := ask(runtime.Goexit); !errors.Is(err, run.ErrExited) {
			t.Error(err)
		}
		var permanent *saga.PermanentError
		if err := g.Examined(time.Second, saga.Permanent(silenced{})); !errors.As(err, &permanent) ||
			!errors.Is(err, run.ErrExited) {
			t.Errorf("a permanent error without a text became %v", err)
		}
		if n, err := handlers.Ask(g, time.Second, func() int { return 7 }); n != 7 || err != nil {
			t.Error(n, err)
		}
	})
}

// silenced is an error whose Error method ends the goroutine.
type silenced struct{}

func (silenced) Error() string {
	runtime.Goexit()
	return ""
}

// bad is a log handler that fails while it handles a record.
type bad struct {
	slog.Handler
	fail *func()
}

func (b bad) Handle(ctx context.Context, r slog.Record) error {
	(*b.fail)()
	return b.Handler.Handle(ctx, r)
}

// Whatever the handler of a logger does, its callers continue, and the log counts the missing records.
func TestLoggerOutlivesItsHandler(t *testing.T) {
	for name, fail := range map[string]func(){
		"panics": func() { panic("disk full") }, "exits": runtime.Goexit, "does not return": forLong,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text strings.Builder
				log := handlers.Logger(slog.New(bad{slog.NewTextHandler(&text, nil), &fail}))
				log.Info("first")
				log.Info("second")
				<-time.After(2 * time.Hour)
				fail = func() {}
				log.Info("third")
				if !strings.Contains(text.String(), "missed=2") || !strings.Contains(text.String(), "msg=third") {
					t.Errorf("the log has %s", &text)
				}
			})
		})
	}
}
