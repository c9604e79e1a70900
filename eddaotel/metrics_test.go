package eddaotel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// numbers returns the points of all metrics: the name, the unit and the attributes, with the value. The value of a
// histogram is the number of its measurements.
func (s *telescope) numbers() map[string]float64 {
	s.Helper()
	var all metricdata.ResourceMetrics
	if err := s.metrics.Collect(s.Context(), &all); err != nil {
		s.Fatal(err)
	}
	found := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			note := func(of attribute.Set, value float64) {
				text := m.Name + " " + m.Unit
				for _, a := range of.ToSlice() {
					text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
				}
				found[text] = value
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Count))
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Count))
				}
			}
		}
	}
	return found
}

// The names, units and attributes follow the conventions, and must not change, because dashboards depend on them.
func TestMetrics(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b := s.bus()
	s.endpoint(b, "orders", bus.EndpointOptions{Policy: func(recoverability.Failure) recoverability.Decision {
		return recoverability.DeadLetter()
	}}, bus.Handle(func(_ *bus.Context, m placed) error {
		if m.Order == "bad" {
			return noStock{}
		}
		return nil
	}))
	s.start(b)
	for _, order := range []string{"1", "2", "bad"} {
		if _, err := b.Send(t.Context(), placed{Order: order}); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(b, 0)
	want := map[string]float64{
		"messaging.client.sent.messages {message} messaging.destination.name=placed messaging.operation.name=send " +
			"messaging.system=edda": 3,
		"messaging.client.consumed.messages {message} messaging.destination.name=orders " +
			"messaging.operation.name=process messaging.system=edda": 2,
		"messaging.client.consumed.messages {message} error.type=eddaotel_test.noStock " +
			"messaging.destination.name=orders messaging.operation.name=process messaging.system=edda": 1,
		"messaging.process.duration s messaging.destination.name=orders messaging.operation.name=process " +
			"messaging.system=edda": 2,
		"messaging.process.duration s error.type=eddaotel_test.noStock messaging.destination.name=orders " +
			"messaging.operation.name=process messaging.system=edda": 1,
		"messaging.client.operation.duration s messaging.destination.name=orders messaging.operation.name=settle " +
			"messaging.operation.type=settle messaging.system=edda": 3,
		"edda.dead_letters {message} edda.kind=placed messaging.destination.name=orders": 1,
		"edda.batch.size {message} messaging.destination.name=orders":                    3,
	}
	if diff := cmp.Diff(want, s.numbers()); diff != "" {
		t.Errorf("the metrics are other than wanted (-) here (+):\n%s", diff)
	}
}

// The gauges are read from the database at each collection.
func TestGaugesOfQueues(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	operator, err := operate.New(s.pool, operate.Options{Schema: s.schema})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := s.Watch(operator)
	if err != nil {
		t.Fatal(err)
	}
	s.run(bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, placed) error { return nil })))()
	s.send(t.Context(), placed{})
	s.send(t.Context(), placed{}, saga.Delay(time.Hour))
	const books = " messaging.destination.name=books"
	numbers := s.numbers()
	want := map[string]float64{"edda.queue.ready {message}": 1, "edda.queue.delayed {message}": 1,
		"edda.queue.claimed {message}": 0, "edda.queue.parked {message}": 0}
	for name, n := range want {
		if got, there := numbers[name+books]; !there || got != n {
			t.Errorf("%s is %v, want %v", name, got, n)
		}
	}
	if lag := numbers["edda.queue.lag s"+books]; lag <= 0 || lag > time.Hour.Seconds() {
		t.Errorf("edda.queue.lag is %v, want the wait of the first message", lag)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var left []string
	for name := range s.numbers() {
		if strings.HasPrefix(name, "edda.queue.") {
			left = append(left, name)
		}
	}
	if left != nil {
		t.Errorf("after stop there are %v", left)
	}
}

// Hooks that were set before are called too, and the headers that they set stay.
func TestBusChainsWhatWasThere(t *testing.T) {
	s := newTelescope(t, eddaotel.Options{})
	b, told := s.chained()
	seen := make(chan saga.Info, 1)
	s.endpoint(b, "orders", bus.EndpointOptions{}, bus.Handle(func(c *bus.Context, _ placed) error {
		seen <- c.Info()
		return nil
	}))
	s.start(b)
	if _, err := b.Send(t.Context(), placed{}); err != nil {
		t.Fatal(err)
	}
	s.advance(b, 0)
	if got := (<-seen).Header("traceparent"); got != ownContext {
		t.Errorf("the message has the context %q, want that of the hook before: %s", got, ownContext)
	}
	slices.Sort(*told)
	if got, want := slices.Compact(*told), []string{"around", "events", "middleware"}; !slices.Equal(got, want) {
		t.Errorf("%v were called, want %v", got, want)
	}
	s.want(`
process orders ~ elsewhere
	settle orders ~ process orders handled
`)
}
