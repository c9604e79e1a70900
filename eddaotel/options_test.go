package eddaotel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A message that was due long after it was sent begins a trace, unless the program chooses a different Relation.
func TestDelayedMessage(t *testing.T) {
	const apart = `
send placed
process books ~ send placed
	settle books ~ process books handled
`
	const together = `
send placed
	process books ~ send placed
		settle books ~ process books handled
`
	for _, c := range []struct {
		relation eddaotel.Relation
		delay    time.Duration
		want     string
	}{
		{eddaotel.Auto, time.Hour, apart}, {eddaotel.Auto, 5 * time.Second, together},
		{eddaotel.Parent, time.Hour, together},
	} {
		t.Run(fmt.Sprint(c.relation, c.delay), func(t *testing.T) {
			s := newTelescope(t, eddaotel.Options{Relation: c.relation})
			b := s.bus()
			s.endpoint(b, "books", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, placed) error { return nil }))
			s.start(b)
			if _, err := b.Send(t.Context(), placed{}, saga.Delay(c.delay)); err != nil {
				t.Fatal(err)
			}
			s.advance(b, c.delay)
			s.want(c.want)
		})
	}
}

// With AskSampler a message without a context has a span too, and the sampler decides about an unsampled message.
func TestAskSampler(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{Sampled: eddaotel.AskSampler, Propagator: nothing{}})
	b := s.bus()
	s.endpoint(b, "books", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, placed) error { return nil }))
	s.start(b)
	if _, err := b.Send(t.Context(), placed{}); err != nil {
		t.Fatal(err)
	}
	s.advance(b, 0)
	s.want(`
send placed
process books
	settle books ~ process books handled
`)
}

// Root gives a trace to a fraction of the conversations without a context; the others have no span.
func TestRoot(t *testing.T) {
	low, high := saga.ID{8: 0x80, 9: 0x0f}, saga.ID{8: 0x80, 9: 0x10} // of 53 bits just below a half, and a half
	for _, c := range []struct {
		root float64
		id   saga.ID
		want bool
	}{
		{0, saga.ID{8: 0x80}, false}, {0.5, low, true}, {0.5, high, false}, {1, saga.ID{8: 0xff, 15: 0xff}, true},
	} {
		s := newTelescope(t, eddaotel.Options{Root: c.root, ClientID: "van 7"})
		d := &saga.Delivery{Info: saga.Info{ID: saga.ID{15: 1}, ConversationID: c.id, Kind: "placed", Attempt: 1}}
		handler := s.Use("books")(func(context.Context, *saga.Delivery) error { return nil })
		if err := handler(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		spans := s.exporter.GetSpans()
		if got := len(spans) == 1; got != c.want {
			t.Errorf("Root %v, conversation %v: %d spans, want one: %t", c.root, c.id, len(spans), c.want)
		}
		for _, span := range spans {
			if id := value(span.Attributes, "messaging.client.id"); id != "van 7" || span.Parent.IsValid() {
				t.Errorf("Root %v: client id %q, parent %v", c.root, id, span.Parent)
			}
		}
	}
}

// nothing is a propagator that writes and reads nothing.
type nothing struct{}

func (nothing) Inject(context.Context, propagation.TextMapCarrier)                        {}
func (nothing) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context { return ctx }
func (nothing) Fields() []string                                                          { return nil }

// The keys of instances are often personal: they are in the spans only if the program sets Key.
func TestKeyIsOptional(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		s := newTelescope(t, eddaotel.Options{Key: wanted})
		b := s.bus()
		s.endpoint(b, "orders", bus.EndpointOptions{}, orders())
		s.endpoint(b, "payments", bus.EndpointOptions{}, charges())
		s.start(b)
		if _, err := b.Send(t.Context(), placed{Order: "7"}); err != nil {
			t.Fatal(err)
		}
		s.advance(b, 0)
		settled := 0
		for _, span := range s.exporter.GetSpans() {
			if span.Name != "settle orders" {
				continue
			}
			settled++
			name, key := value(span.Links[0].Attributes, "edda.saga.name"), value(span.Links[0].Attributes,
				"edda.saga.key")
			if name != "order" || (key == "7") != wanted {
				t.Errorf("with Key %t the settle has the saga %q and the key %q", wanted, name, key)
			}
		}
		if settled != 2 {
			t.Errorf("%d settle spans, want 2", settled)
		}
	}
}

// outside is a middleware with a span of its own.
func (s *telescope) outside(next bus.Handler) bus.Handler {
	return func(ctx context.Context, d *saga.Delivery) error {
		ctx, span := s.tracer.Start(ctx, "outside", trace.WithNewRoot())
		defer span.End()
		return next(ctx, d)
	}
}

// An invalid context counts as no context; the active span does not take its place.
func TestContextThatCannotBeRead(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.plainBus()
	s.endpoint(b, "books", bus.EndpointOptions{}, bus.Use(s.outside, s.Use("books")),
		bus.Handle(func(*bus.Context, placed) error { return nil }))
	s.start(b)
	if _, err := b.Send(t.Context(), placed{}, saga.WithHeader("traceparent", "none")); err != nil {
		t.Fatal(err)
	}
	s.advance(b, 0)
	s.want("outside")
}

// A discarded message was handled in order.
func TestDiscardIsNoError(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	s.endpoint(b, "books", bus.EndpointOptions{},
		bus.Handle(func(*bus.Context, placed) error { return saga.Discard("not wanted") }))
	s.start(b)
	if _, err := b.Send(t.Context(), placed{}); err != nil {
		t.Fatal(err)
	}
	s.advance(b, 0)
	s.want(`
send placed
	process books ~ send placed
		settle books ~ process books discarded
`)
}

// If a middleware outside of this one has a span, it is the parent, and the message's context is a link.
func TestActiveSpanIsTheParent(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.plainBus()
	s.endpoint(b, "books", bus.EndpointOptions{}, bus.Use(s.outside, s.Use("books")),
		bus.Handle(func(*bus.Context, placed) error { return nil }))
	s.start(b)
	if _, err := b.Send(t.Context(), placed{}); err != nil {
		t.Fatal(err)
	}
	s.advance(b, 0)
	s.want(`
send placed
outside
	process books ~ send placed
		settle books ~ process books handled
`)
}
