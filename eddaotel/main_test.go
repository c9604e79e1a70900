package eddaotel_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// telescope records the spans and metrics of a Tracing. At the end of the test it checks the conventions.
type telescope struct {
	*testing.T
	*eddaotel.Tracing
	exporter *tracetest.InMemoryExporter
	tracer   trace.Tracer // of the program's own spans
	metrics  *sdkmetric.ManualReader
	names    map[trace.SpanID]string // of all spans that tree has read
}

func newTelescope(t *testing.T, o eddaotel.Options) *telescope {
	t.Helper()
	exporter, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	o.TracerProvider = provider
	o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	if o.Propagator == nil {
		o.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	s := &telescope{T: t, Tracing: eddaotel.New(o), exporter: exporter, tracer: provider.Tracer("program"),
		metrics: reader, names: map[trace.SpanID]string{}}
	t.Cleanup(func() {
		for _, span := range exporter.GetSpans() {
			if fault := conforms(span); fault != "" && span.InstrumentationScope.Name != "program" {
				t.Errorf("span %q: %s", span.Name, fault)
			}
		}
	})
	return s
}

// request begins a span of the program's own, and sends in it.
func (s *telescope) request(f func(ctx context.Context)) {
	s.Helper()
	ctx, span := s.tracer.Start(s.Context(), "request")
	defer span.End()
	f(ctx)
}

// bus returns a bus in memory, with the hooks.
func (s *telescope) bus() *memory.Bus {
	s.Helper()
	hooks := bus.Options{}
	s.Bus(&hooks)
	b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler), Rare: hooks.Rare,
		Outgoing: hooks.Outgoing, Around: hooks.Around, Middleware: hooks.Middleware})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// plainBus returns a bus whose endpoints have the middleware only if a test passes it.
func (s *telescope) plainBus() *memory.Bus {
	s.Helper()
	b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler), Outgoing: s.Outgoing,
		Around: s.Around})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *telescope) start(b *memory.Bus) {
	s.Helper()
	stop, err := b.Start(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := stop(); err != nil {
			s.Error(err)
		}
	})
}

func (s *telescope) advance(b *memory.Bus, d time.Duration) {
	s.Helper()
	if err := b.Advance(s.Context(), d); err != nil {
		s.Fatal(err)
	}
}

// endpoint makes an endpoint that handles one message at a time.
func (s *telescope) endpoint(b *memory.Bus, name string, o bus.EndpointOptions, parts ...bus.Part) {
	s.Helper()
	o.Concurrency = 1
	if _, err := memory.NewEndpoint(b, name, o, parts...); err != nil {
		s.Fatal(err)
	}
}

// want compares the spans with a tree. Each line is a span below its parent: its name, the type of its error, and
// behind "~" the spans that it links to, each with the fate of its message.
func (s *telescope) want(tree string) {
	s.Helper()
	if diff := gocmp.Diff(strings.TrimSpace(tree), strings.TrimSpace(s.tree())); diff != "" {
		s.Errorf("the spans are other than wanted (-) here (+):\n%s", diff)
	}
}

func (s *telescope) tree() string {
	spans := s.exporter.GetSpans()
	for _, span := range spans {
		s.names[span.SpanContext.SpanID()] = span.Name
	}
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		if a.Parent.IsValid() && b.Parent.IsValid() && a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return a.StartTime.Compare(b.StartTime)
	})
	var text strings.Builder
	var below func(parent trace.SpanID, indent string)
	below = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			of := span.Parent.SpanID()
			if s.names[of] == "" { // it has no parent, or the parent is of a different program
				of = trace.SpanID{}
			}
			if of != parent {
				continue
			}
			text.WriteString(indent + line(span, s.names) + "\n")
			below(span.SpanContext.SpanID(), indent+"\t")
		}
	}
	below(trace.SpanID{}, "")
	return text.String()
}

func line(span tracetest.SpanStub, names map[trace.SpanID]string) string {
	text := span.Name
	if span.Status.Code == codes.Error {
		text += " !" + value(span.Attributes, "error.type")
	}
	var links []string // each text once
	for _, link := range span.Links {
		name := cmp.Or(names[link.SpanContext.SpanID()], "elsewhere")
		if fate := value(link.Attributes, "edda.fate"); fate != "" {
			name += " " + fate
		}
		if !slices.Contains(links, name) {
			links = append(links, name)
		}
	}
	slices.Sort(links)
	if len(links) > 0 {
		text += " ~ " + strings.Join(links, ", ")
	}
	return text
}

func value(all []attribute.KeyValue, key string) string {
	for _, a := range all {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

const ownContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// chained returns a bus in memory whose options had hooks already; told lists their names as they are called.
func (s *telescope) chained() (b *memory.Bus, told *[]string) {
	s.Helper()
	told = &[]string{}
	note := func(what string) { *told = append(*told, what) } // one message, whose hooks are called in turn
	hooks := bus.Options{
		Outgoing: func(_ context.Context, i *saga.Info) { i.AddHeader("traceparent", ownContext) },
		Around: func(ctx context.Context, _ *event.Transaction, run func(context.Context)) {
			note("around")
			run(ctx)
		},
		Middleware: func(string) bus.Middleware {
			return func(next bus.Handler) bus.Handler {
				return func(ctx context.Context, d *saga.Delivery) error { note("middleware"); return next(ctx, d) }
			}
		},
		Events: func(event.Event) { note("events") },
	}
	s.Bus(&hooks)
	b, err := memory.New(memory.Options{Start: noon, Logger: slog.New(slog.DiscardHandler), Events: hooks.Events,
		Outgoing: hooks.Outgoing, Around: hooks.Around, Middleware: hooks.Middleware})
	if err != nil {
		s.Fatal(err)
	}
	return b, told
}
