package eddaotel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

type (
	placed  struct{ Order string }
	charge  struct{ Order string }
	charged struct{ Order string }
	overdue struct{}
	order   struct{ Charged bool }
)

func (placed) Kind() string  { return "placed" }
func (charge) Kind() string  { return "charge" }
func (charged) Kind() string { return "charged" }
func (overdue) Kind() string { return "overdue" }

// orders is a saga that requests a charge for its order from a service, and waits for a day.
func orders() bus.Part {
	return bus.Saga(saga.Define("order", saga.Options{},
		saga.StartedBy(func(m placed) string { return m.Order }, func(_ *order, ctx *saga.Context, m placed) error {
			ctx.Send(charge(m))
			ctx.Timeout(24*time.Hour, overdue{})
			return nil
		}),
		saga.OnReply(func(o *order, ctx *saga.Context, _ charged) error {
			o.Charged = true
			return nil
		}),
		saga.OnTimeout(func(_ *order, ctx *saga.Context, _ overdue) error {
			ctx.Complete()
			return nil
		})))
}

func charges() bus.Part {
	return bus.Handle(func(c *bus.Context, m charge) error { c.Reply(charged(m)); return nil })
}

// A request, the saga that it starts, a service that the saga calls, and the reply are one trace. The timeout of the
// next day is a second trace, with a link.
func TestStoryOfARequestAndItsTimeout(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	s.endpoint(b, "orders", bus.EndpointOptions{}, orders())
	s.endpoint(b, "payments", bus.EndpointOptions{}, charges())
	s.start(b)
	s.request(func(ctx context.Context) {
		if _, err := b.Send(ctx, placed{Order: "7"}); err != nil {
			t.Fatal(err)
		}
	})
	s.advance(b, 0)
	s.want(`
request
	send placed
		process orders ~ send placed
			process payments ~ process orders
				process orders ~ process payments
					settle orders ~ process orders handled
				settle payments ~ process payments handled
			settle orders ~ process orders handled
`)
	s.exporter.Reset()
	s.advance(b, 24*time.Hour)
	s.want(`
process orders ~ process orders
	settle orders ~ process orders handled
`)
}

// Each subscriber of an event is a branch of the trace.
func TestStoryOfAnEventToThree(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	for _, name := range []string{"books", "mails", "stock"} {
		s.endpoint(b, name, bus.EndpointOptions{}, bus.Handle(func(*bus.Context, placed) error { return nil }))
	}
	s.start(b)
	s.request(func(ctx context.Context) {
		if _, err := b.Publish(ctx, placed{Order: "7"}); err != nil {
			t.Fatal(err)
		}
	})
	s.advance(b, 0)
	s.want(`
request
	publish placed
		process books ~ publish placed
			settle books ~ process books handled
		process mails ~ publish placed
			settle mails ~ process mails handled
		process stock ~ publish placed
			settle stock ~ process stock handled
`)
}

type noStock struct{}

func (noStock) Error() string { return "no stock" }

// A message that fails five times has five calls. A call after a delay begins a new trace with a link to the context of
// the message. The last settle span records that the message is dead.
func TestStoryOfFiveRetries(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	s.endpoint(b, "stock", bus.EndpointOptions{Policy: func(f recoverability.Failure) recoverability.Decision {
		switch {
		case f.Info.Attempt == 1:
			return recoverability.RetryNow()
		case f.Info.Attempt < 6:
			return recoverability.RetryIn(time.Minute)
		}
		return recoverability.DeadLetter()
	}}, bus.Handle(func(*bus.Context, placed) error { return noStock{} }))
	s.start(b)
	s.request(func(ctx context.Context) {
		if _, err := b.Send(ctx, placed{Order: "7"}); err != nil {
			t.Fatal(err)
		}
	})
	s.advance(b, 0)
	for range 4 {
		s.advance(b, time.Minute)
	}
	const again = `process stock !eddaotel_test.noStock ~ send placed
	settle stock ~ process stock retried
`
	s.want(`
request
	send placed
		process stock !eddaotel_test.noStock ~ send placed
			settle stock ~ process stock retried
		process stock !eddaotel_test.noStock ~ send placed
			settle stock ~ process stock retried
` + again + again + again + `process stock !eddaotel_test.noStock ~ send placed
	settle stock ~ process stock dead
`)
}

// The message of a manifest begins a trace, which ends with the last step of its run.
func TestStoryOfAManifest(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	s.endpoint(b, "orders", bus.EndpointOptions{}, orders())
	s.endpoint(b, "payments", bus.EndpointOptions{}, charges())
	_, err := memory.NewScheduler(b, scheduler.Manifest{Name: "night/settle", Message: placed{Order: "7"},
		When: scheduler.Cron("0 13 * * *", "UTC")})
	if err != nil {
		t.Fatal(err)
	}
	s.start(b)
	s.advance(b, time.Hour)
	s.want(`
fire placed
	process orders ~ fire placed
		process payments ~ process orders
			process orders ~ process payments
				settle orders ~ process orders handled
			settle payments ~ process payments handled
		settle orders ~ process orders handled
`)
	for _, span := range s.exporter.GetSpans() {
		if of := value(span.Attributes, "edda.manifest"); span.Name == "fire placed" && of != "night/settle" {
			t.Errorf("the span of the firing has the manifest %q", of)
		}
	}
}

// Without the context of a sender, or with a context that is not sampled, there is no span; the handler passes it on.
func TestFollowCreator(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	seen := make(chan saga.Info, 2)
	s.endpoint(b, "orders", bus.EndpointOptions{}, orders())
	s.endpoint(b, "payments", bus.EndpointOptions{}, bus.Handle(func(c *bus.Context, m charge) error {
		seen <- c.Info()
		return nil
	}))
	s.start(b)
	const unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	if _, err := b.Send(t.Context(), placed{Order: "7"}, saga.WithHeader("traceparent", unsampled)); err != nil {
		t.Fatal(err)
	}
	s.advance(b, 0)
	s.want("")
	if got := (<-seen).Header("traceparent"); got != unsampled {
		t.Errorf("the next message has the context %q, want that of the first: %s", got, unsampled)
	}
}

// The other relations, and a span for each message of a handler.
func TestOptions(t *testing.T) {
	for name, o := range map[string]struct {
		options eddaotel.Options
		want    string
	}{
		"Links": {eddaotel.Options{Relation: eddaotel.Links}, `
send placed
process orders ~ send placed
settle orders ~ process orders handled
`},
		"Creates": {eddaotel.Options{Creates: true}, `
send placed
	process orders ~ send placed
		send charge
		settle orders ~ process orders handled
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTelescope(t, o.options)
			b := s.bus()
			s.endpoint(b, "orders", bus.EndpointOptions{}, bus.Handle(func(c *bus.Context, m placed) error {
				c.Send(charge(m), saga.To("sink"))
				return nil
			}))
			s.endpoint(b, "sink", bus.EndpointOptions{}, charges())
			s.start(b)
			if err := b.Pause("sink", "the test ends here"); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Send(t.Context(), placed{Order: "7"}); err != nil {
				t.Fatal(err)
			}
			s.advance(b, 0)
			s.want(o.want)
		})
	}
}

// A handler that panics has the stack in its span. No other span has an event.
func TestPanicOfAHandler(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	s.endpoint(b, "orders", bus.EndpointOptions{Policy: func(recoverability.Failure) recoverability.Decision {
		return recoverability.DeadLetter()
	}}, bus.Handle(func(_ *bus.Context, m placed) error {
		if m.Order == "panics" {
			panic("no")
		}
		return errors.New("no")
	}))
	s.start(b)
	for _, order := range []string{"panics", "fails"} {
		if _, err := b.Send(t.Context(), placed{Order: order}); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(b, 0)
	s.want(`
send placed
	process orders !panic ~ send placed
		settle orders ~ process orders dead
send placed
	process orders !_OTHER ~ send placed
		settle orders ~ process orders dead
`)
	for _, span := range s.exporter.GetSpans() {
		if panics := value(span.Attributes, "error.type") == "panic"; panics != (len(span.Events) == 1) {
			t.Errorf("%s has %d events, want one for a panic alone", span.Name, len(span.Events))
		}
	}
}
