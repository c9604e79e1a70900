package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/border/shop"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.uber.org/goleak"
)

// The variables that make the test binary a collector, or a service.
const (
	collectorVariable = "EDDA_COLLECTOR"
	serviceVariable   = "EDDA_COLLECTOR_SERVICE"
)

const patience = 2 * time.Minute // far longer than any of these waits takes

func TestMain(m *testing.M) {
	cluster.RunNode()
	procs.Become(collectorVariable, "collector", collect)
	procs.Become(serviceVariable, "service", serve)
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines leak:", err)
		code = 1
	}
	os.Exit(code)
}

// address is where the collector receives and writes.
type address struct{ Endpoint, Files string }

// collect is the main function of the collector's process.
func collect() error {
	var at address
	ctx, err := procs.Attend(context.Background(), collectorVariable, &at)
	err = errors.Join(err, os.Setenv(endpointVariable, at.Endpoint), os.Setenv(filesVariable, at.Files))
	if err != nil {
		return err
	}
	command := otelcol.NewCommand(settings())
	command.SetArgs([]string{})
	return command.ExecuteContext(ctx)
}

// task is the input of a process of a service.
type task struct {
	Process  shop.Process
	Endpoint string // of the collector
}

// serve is the main function of a process of a service.
func serve() error {
	var t task
	ctx, err := procs.Attend(context.Background(), serviceVariable, &t)
	if err != nil {
		return err
	}
	exports, err := newTelemetry(ctx, t.Endpoint, t.Process.Service)
	if err != nil {
		return err
	}
	t.Process.Configure = exports.Bus
	err = t.Process.Serve(ctx)
	return errors.Join(err, exports.close(context.WithoutCancel(ctx)))
}

// telemetry exports the spans and metrics of a service to a collector.
type telemetry struct {
	*eddaotel.Tracing
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
}

func newTelemetry(ctx context.Context, endpoint, service string) (*telemetry, error) {
	traces, metrics, err := providers(ctx, endpoint, service)
	if err != nil {
		return nil, err
	}
	return &telemetry{traces: traces, metrics: metrics, Tracing: eddaotel.New(eddaotel.Options{
		TracerProvider: traces, MeterProvider: metrics, Propagator: propagation.TraceContext{}})}, nil
}

// providers is in docs/guide/tracing.md.
func providers(ctx context.Context, endpoint, service string) (traces *sdktrace.TracerProvider,
	metrics *sdkmetric.MeterProvider, err error) {
	// page export
	spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, nil, err
	}
	points, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(endpoint), otlpmetricgrpc.WithInsecure())
	if err != nil {
		return nil, nil, err
	}
	of := resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName(service))
	traces = sdktrace.NewTracerProvider(sdktrace.WithResource(of), sdktrace.WithBatcher(spans))
	metrics = sdkmetric.NewMeterProvider(sdkmetric.WithResource(of),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points)))
	// end
	return traces, metrics, nil
}

// close exports the remaining data.
func (t *telemetry) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx))
}

// The services by their service.name. The front is the process of the test, where orders are placed.
const (
	front          = "front"
	ordersProcess  = "orders"
	paymentProcess = "payments"
)

// demo is the result of the orders.
type demo struct {
	placed map[string]bool   // conversations, and whether the card was refused
	roots  map[string]string // the traces in which they began
	spans  []span
	points []point
}

// order places orders in this process, while two others run the services. When all of them have ended, it reads the
// files of the collector.
func order(t *testing.T, n int) demo {
	t.Helper()
	at := address{Endpoint: free(t), Files: t.TempDir()}
	collector, endCollector := start(t, "collector", collectorVariable, at)
	listening(t, at.Endpoint, collector)
	exports, err := newTelemetry(t.Context(), at.Endpoint, front)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shop.Open(t.Context(), shop.Options{Nodes: 1, Configure: exports.Bus})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, endOrders := start(t, ordersProcess, serviceVariable, task{s.Orders.Process, at.Endpoint})
	_, endPayments := start(t, paymentProcess, serviceVariable, task{s.Payments.Process, at.Endpoint})
	d := demo{placed: map[string]bool{}, roots: map[string]string{}}
	for i := range n {
		ctx, span := exports.traces.Tracer("front").Start(t.Context(), "order")
		o := orders.PlaceOrder{OrderID: fmt.Sprint("order-", i), Card: fmt.Sprintf("%016d", i), Cents: 100}
		sent, err := s.Counter.Place(ctx, o)
		span.End()
		if err != nil {
			t.Fatal(err)
		}
		d.placed[sent.ID.String()] = payments.Refuses(o.Card)
		d.roots[sent.ID.String()] = span.SpanContext().TraceID().String()
	}
	s.Drain(t.Context(), patience)
	if v, err := s.Judge(t.Context()); err != nil || !v.Fine() {
		t.Fatalf("%v %v", v, err)
	}
	endOrders()
	endPayments()
	if err := exports.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	endCollector() // it writes the remaining data
	d.spans, d.points = readSpans(t, at.Files), readPoints(t, at.Files)
	return d
}

// start starts the test binary as a child process. end ends it in order, and waits.
func start(t *testing.T, name, variable string, task any) (p *procs.Process, end func()) {
	t.Helper()
	p, err := procs.Start(procs.Job{Name: name, Variable: variable, Task: task, Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, func() {
		t.Helper()
		if err := p.Stop(pgdev.Patience(patience)); err != nil {
			t.Fatal(err)
		}
	}
}

// free returns a free address.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// listening waits for the collector to listen.
func listening(t *testing.T, endpoint string, collector *procs.Process) {
	t.Helper()
	deadline, look := time.NewTimer(pgdev.Patience(patience)), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer look.Stop()
	for {
		conn, err := net.Dial("tcp", endpoint)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-look.C:
		case <-collector.Ended():
			t.Fatal("the collector has ended")
		case <-deadline.C:
			t.Fatalf("the collector does not listen: %v", err)
		}
	}
}
