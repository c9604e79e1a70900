package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

type traceKey struct{}

// traced is a context with a trace.
func traced(t *testing.T, trace string) context.Context {
	return context.WithValue(t.Context(), traceKey{}, trace)
}

// stamped runs f as the first step of a new instance, with the hook.
func stamped(t *testing.T, hook func(context.Context, *saga.Info), f do) saga.Outcome {
	t.Helper()
	d := acting(f)
	s := open(t, d, fresh())
	in := deliver(place{Order: "7"})
	call, err := d.Prepare(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	rt := turn(in)
	rt.Outgoing = hook
	rt.Around = func(ctx context.Context, handler func(context.Context) error) error {
		return handler(context.WithValue(ctx, traceKey{}, "of the middleware"))
	}
	return s.Step(traced(t, "of the step"), rt, call)
}

// headerText is the headers of a message.
func headerText(i saga.Info) string {
	var all []string
	for name, value := range i.Headers() {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, " ")
}

// The hook gets each message as it is written, with the context of the handler.
func TestOutgoingOfAStep(t *testing.T) {
	seen := ""
	out := stamped(t, func(ctx context.Context, i *saga.Info) {
		seen += fmt.Sprintf("%v %s due=%t origin=%t\n", i.Intent, i.Kind, !i.Due.IsZero(), !i.Origin.IsZero())
		i.AddHeader("own", "of the hook")
		i.AddHeader("trace", fmt.Sprint(ctx.Value(traceKey{})))
		i.Kind, i.ID = "other", saga.ID{}
	}, func(_ *order, ctx *saga.Context) error {
		ctx.Send(paid{Order: "7"}, saga.WithHeader("own", "of the sender"))
		ctx.Publish(paid{Order: "7"})
		ctx.Reply(paid{Order: "7"})
		ctx.ReplyToOriginator(paid{Order: "7"})
		ctx.Timeout(time.Hour, overdue{})
		return nil
	})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	want := "send order.paid due=false origin=true\npublish order.paid due=false origin=true\n" +
		"reply order.paid due=false origin=true\nreply order.paid due=false origin=false\n" +
		"timeout order.overdue due=true origin=true\n"
	if seen != want {
		t.Errorf("the hook saw\n%swant\n%s", seen, want)
	}
	for n, m := range out.Out {
		want := "own=of the hook trace=of the middleware"
		if n == 0 {
			want = "own=of the sender trace=of the middleware"
		}
		if got := headerText(m.Info); got != want || m.Info.Kind == "other" || m.Info.ID.IsZero() {
			t.Errorf("message %d is %s %s with the headers %q, want %q", n, m.Info.Kind, m.Info.ID, got, want)
		}
	}
}

// The rules of WithHeader hold for headers that the hook adds, and a violation fails the step.
func TestOutgoingWithAnInvalidHeader(t *testing.T) {
	for name, value := range map[string]string{
		"": "x", "edda-from": "x", "a\x00": "x", "a": "\xff", "large": strings.Repeat("x", 9<<10),
	} {
		want := stamped(t, nil, func(_ *order, ctx *saga.Context) error {
			ctx.Send(paid{}, saga.WithHeader(name, value))
			return nil
		})
		got := stamped(t, func(_ context.Context, i *saga.Info) { i.AddHeader(name, value) },
			func(_ *order, ctx *saga.Context) error { ctx.Send(paid{}); return nil })
		var permanent *saga.PermanentError
		text := func(o saga.Outcome) string {
			at := strings.Index(fmt.Sprint(o.Err), "header")
			return fmt.Sprint(o.Err)[max(at, 0):]
		}
		if !errors.As(got.Err, &permanent) || text(got) != text(want) || len(got.Out) > 0 {
			t.Errorf("header %q: %v, want an error as that of WithHeader: %v", name, got.Err, want.Err)
		}
	}
	many := stamped(t, func(_ context.Context, i *saga.Info) {
		for n := range 100 {
			i.AddHeader(fmt.Sprint("n", n), "")
		}
	}, func(_ *order, ctx *saga.Context) error { ctx.Send(paid{}); return nil })
	if !errors.Is(many.Err, saga.ErrTooLarge) {
		t.Errorf("100 headers: %v, want ErrTooLarge", many.Err)
	}
}

// A hook that panics fails the step like a panic of the handler, even if the handler recovers from everything.
func TestOutgoingThatPanics(t *testing.T) {
	for name, f := range map[string]do{
		"send":    func(_ *order, ctx *saga.Context) error { ctx.Send(paid{}); return nil },
		"discard": func(_ *order, ctx *saga.Context) error { ctx.Send(paid{}); return saga.Discard("done") },
		"timeout": func(_ *order, ctx *saga.Context) error { ctx.Timeout(time.Hour, overdue{}); return nil },
	} {
		out := stamped(t, func(context.Context, *saga.Info) { panic("no tracer") }, f)
		var panicked *saga.PanicError
		var permanent *saga.PermanentError
		if !errors.As(out.Err, &panicked) || errors.As(out.Err, &permanent) || len(out.Out) > 0 || out.Discard != "" {
			t.Errorf("%s: %+v, want the panic, which may be tried again", name, out)
		}
	}
}

// A sender outside of a step passes its context as Caller.
func TestOutgoingOfCompose(t *testing.T) {
	rt := turn(saga.Delivery{})
	rt.Outgoing = func(ctx context.Context, i *saga.Info) { i.AddHeader("trace", fmt.Sprint(ctx.Value(traceKey{}))) }
	out, err := rt.Compose(saga.Command, paid{})
	if got := headerText(out.Info); err != nil || got != "" {
		t.Errorf("without a Caller: %q, %v, want no header", got, err)
	}
	rt.Caller = traced(t, "of the caller")
	out, err = rt.Compose(saga.Command, paid{})
	if got := headerText(out.Info); err != nil || got != "trace=of the caller" {
		t.Errorf("%q, %v, want the trace of the caller", got, err)
	}
	rt.Outgoing = func(context.Context, *saga.Info) { panic("no tracer") }
	_, err = rt.Compose(saga.Command, paid{})
	var panicked *saga.PanicError
	if !errors.As(err, &panicked) {
		t.Errorf("%v, want the panic as an error", err)
	}
}
