package hooks_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/hooks"
)

type work = func(context.Context)

// guarded calls f around a transaction that does what it is given.
func guarded(t *testing.T, f hooks.Around, run work) {
	hooks.Guard(f, slog.New(slog.DiscardHandler))(t.Context(), &event.Transaction{}, run)
}

func TestAroundRunsOnce(t *testing.T) {
	for name, f := range map[string]hooks.Around{
		"as it should":  func(ctx context.Context, _ *event.Transaction, run work) { run(ctx) },
		"twice":         func(ctx context.Context, _ *event.Transaction, run work) { run(ctx); run(ctx) },
		"not at all":    func(context.Context, *event.Transaction, work) {},
		"after a panic": func(context.Context, *event.Transaction, work) { panic("no tracer") },
		"and panics":    func(ctx context.Context, _ *event.Transaction, run work) { run(ctx); panic("no tracer") },
		"in a deferred call": func(ctx context.Context, _ *event.Transaction, run work) {
			defer run(ctx)
			panic("no tracer")
		},
	} {
		ran := 0
		guarded(t, f, func(context.Context) { ran++ })
		if ran != 1 {
			t.Errorf("a hook that runs the transaction %s: it ran %d times, want once", name, ran)
		}
	}
	if hooks.Guard(nil, nil) != nil {
		t.Error("no hook makes one")
	}
}

// A panic of Edda's own is none of the hook.
func TestPanicGoesOnUnderAround(t *testing.T) {
	for name, f := range map[string]hooks.Around{
		"lets it pass": func(ctx context.Context, _ *event.Transaction, run work) { run(ctx) },
		"recovers it": func(ctx context.Context, _ *event.Transaction, run work) {
			defer func() { _ = recover() }()
			run(ctx)
		},
	} {
		func() {
			defer func() {
				if v := recover(); v != "a fault of Edda" {
					t.Errorf("a hook that %s: recovered %v, want the panic", name, v)
				}
			}()
			guarded(t, f, func(context.Context) { panic("a fault of Edda") })
		}()
	}
}

// Rare gets every event except Handled, and a receiver that panics takes none from the other.
func TestReceivers(t *testing.T) {
	for _, panics := range []bool{false, true} {
		var all, rare []event.Event
		r := hooks.Receivers{
			Log: slog.New(slog.DiscardHandler), Rare: func(e event.Event) { rare = append(rare, e) },
			Events: func(e event.Event) {
				all = append(all, e)
				if panics {
					panic("no such label")
				}
			},
		}
		r.Emit(event.Handled{})
		r.Emit(event.BatchDone{})
		if len(all) != 2 || len(rare) != 1 {
			t.Errorf("Events has %d and Rare %d, want 2 and 1", len(all), len(rare))
		}
	}
}
