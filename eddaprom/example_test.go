package eddaprom_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/prometheus/client_golang/prometheus"
)

// The example uses the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// Metrics count the events of the bus, and read the depth of the queues at a scrape.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	metrics := eddaprom.New(eddaprom.Options{})
	b, err := bus.New(pool, bus.Options{Events: metrics.Observe})
	check(err)
	check(b.InstallQueue(ctx, "payments", "card.charge"))
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	metrics.Watch(operator)

	registry := prometheus.NewRegistry() // or prometheus.MustRegister(metrics)
	check(registry.Register(metrics))
	families, err := registry.Gather()
	check(err)
	for _, f := range families {
		if f.GetName() == "edda_queue_ready" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetLabel()[0].GetValue(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: edda_queue_ready payments 0
}
