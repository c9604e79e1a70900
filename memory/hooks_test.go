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
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

type traceKey struct{}

// The hooks work as on Postgres: Outgoing has the context of its caller, and Around gets the fates.
func TestHooks(t *testing.T) {
	var mu sync.Mutex
	var fates []string
	b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler),
		Middleware: func(endpoint string) bus.Middleware {
			return func(next bus.Handler) bus.Handler {
				return func(ctx context.Context, d *saga.Delivery) error {
					trace := fmt.Sprint(ctx.Value(traceKey{}), " in ", endpoint)
					return next(context.WithValue(ctx, traceKey{}, trace), d)
				}
			}
		},
		Outgoing: func(ctx context.Context, i *saga.Info) { i.AddHeader("trace", fmt.Sprint(ctx.Value(traceKey{}))) },
		Around: func(ctx context.Context, t *event.Transaction, run func(context.Context)) {
			run(context.WithValue(ctx, traceKey{}, "around "+t.Endpoint))
			mu.Lock()
			defer mu.Unlock()
			for _, m := range t.Messages() {
				trace := m.Info.Header("trace")
				fates = append(fates, fmt.Sprintf("%s %d %s of %s", m.Info.Kind, m.Info.Attempt, m.Fate, trace))
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	on(t, b, "steps", bus.EndpointOptions{Policy: func(f recoverability.Failure) recoverability.Decision {
		return recoverability.RetryNow()
	}}, bus.HandleRaw(func(c *bus.Context, d *saga.Delivery) error {
		if d.Info.Kind == "second" {
			return nil
		}
		if d.Info.Attempt == 1 {
			return errors.New("not yet")
		}
		c.Send(saga.Raw{Name: "second", Body: []byte(`{}`)}, saga.To("steps"))
		return nil
	}, "fired"))
	_, err = memory.NewScheduler(b, scheduler.Manifest{Name: "clock", When: scheduler.Cron("0 13 * * *", "UTC"),
		Message: saga.Raw{Name: "fired", Body: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := b.Start(context.WithValue(t.Context(), traceKey{}, "run"))
	if err != nil {
		t.Fatal(err)
	}
	sender := context.WithValue(t.Context(), traceKey{}, "caller")
	if _, err := b.Send(sender, saga.Raw{Name: "first", Body: []byte(`{}`)}, saga.To("steps")); err != nil {
		t.Fatal(err)
	}
	advance(t, b, 0)
	advance(t, b, time.Hour)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(fates)
	want := []string{"fired 1 retried of run", "fired 2 handled of run", "first 1 retried of caller",
		"first 2 handled of caller", "second 1 handled of around steps in steps",
		"second 1 handled of around steps in steps"}
	if !slices.Equal(fates, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(fates, "\n"), strings.Join(want, "\n"))
	}
}

// A hook that misbehaves loses no message.
func TestHooksThatMisbehave(t *testing.T) {
	type run = func(context.Context)
	for name, around := range map[string]func(context.Context, *event.Transaction, run){
		"panics before": func(context.Context, *event.Transaction, run) { panic("no tracer") },
		"panics after":  func(ctx context.Context, _ *event.Transaction, run run) { run(ctx); panic("no tracer") },
		"does not run":  func(context.Context, *event.Transaction, run) {},
		"exits before":  func(context.Context, *event.Transaction, run) { runtime.Goexit() },
		"exits after":   func(ctx context.Context, _ *event.Transaction, run run) { run(ctx); runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			handled := 0
			b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler), Around: around})
			if err != nil {
				t.Fatal(err)
			}
			on(t, b, "steps", bus.EndpointOptions{Concurrency: 1},
				bus.HandleRaw(func(*bus.Context, *saga.Delivery) error { handled++; return nil }))
			start(t, b)
			for range 3 {
				send(t, b, saga.Raw{Name: "first", Body: []byte(`{}`)}, saga.To("steps"))
			}
			advance(t, b, 0)
			if handled != 3 {
				t.Errorf("%d were handled, want 3", handled)
			}
		})
	}
}
