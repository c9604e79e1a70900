package edda_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// A host checks several endpoints, and other values with a Run method, and runs them as one: if one fails all end.
func ExampleNewHost() {
	ctx, pool, end := openPool() // the pgxpool.Pool of a program
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	books, err := bus.NewEndpoint(b, "books", bus.EndpointOptions{}, bus.HandleTx(settle))
	check(err)
	rates, err := bus.NewEndpoint(b, "rates", bus.EndpointOptions{}, bus.HandleTx(readRates))
	check(err)
	ctx, stop := context.WithCancel(ctx) // as signal.NotifyContext does
	hello := edda.RunnerFunc(func(context.Context) error {
		fmt.Println("everything runs")
		stop()
		return nil
	})
	host, err := edda.NewHost(books, rates, hello)
	check(err)
	check(host.Install(ctx)) // once for each release
	fmt.Println("ended:", host.Run(ctx))
	// Output:
	// everything runs
	// ended: <nil>
}

// Probes for a load balancer or for Kubernetes.
func ExampleHost_Health() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	seen := make(chan struct{})
	count := func(*bus.Context, pgx.Tx, ReadRates) error { close(seen); return nil }
	rates, err := bus.NewEndpoint(b, "rates", bus.EndpointOptions{}, bus.HandleTx(count))
	check(err)
	host, err := edda.NewHost(rates)
	check(err)
	mux := http.NewServeMux()
	mux.Handle("/health/", edda.HealthHandler(host)) // /health/live and /health/ready
	stop := start(ctx, host)

	_, err = b.Send(ctx, ReadRates{})
	check(err)
	<-seen
	h := host.Health(ctx)
	fmt.Println("live:", h.Live, "ready:", h.Ready, h.State, h.Database)
	stop()
	h = host.Health(ctx)
	fmt.Println("live:", h.Live, "ready:", h.Ready, h.State)
	// Output:
	// live: true ready: true running <nil>
	// live: false ready: false ended
}
