package main

import (
	"cmp"
	"context"
	"net/http"
	"os"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serve runs the shop until ctx ends. It creates nothing in the database.
func serve(ctx context.Context, pool *pgxpool.Pool) error {
	metrics := eddaprom.New(eddaprom.Options{})
	b, err := bus.New(pool, bus.Options{Events: metrics.Observe})
	if err != nil {
		return err
	}
	runners, err := shop(b)
	if err != nil {
		return err
	}
	operator, err := operate.New(pool, operate.Options{})
	if err != nil {
		return err
	}
	metrics.Watch(operator)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	public, internal := http.NewServeMux(), http.NewServeMux()
	forCustomers := newSite("customers", cmp.Or(os.Getenv("SHOP_LISTEN"), "127.0.0.1:8080"), public)
	forOperators := newSite("operators", cmp.Or(os.Getenv("SHOP_OPERATORS"), "127.0.0.1:9090"), internal)
	host, err := edda.NewHost(append(runners, forCustomers, forOperators)...)
	if err != nil {
		return err
	}
	ui, err := pages(pool) //nolint:contextcheck // it makes no connection before a request comes
	if err != nil {
		return err
	}
	forOperators.server.RegisterOnShutdown(ui.Close)
	public.Handle("POST /orders", placing(b))
	internal.Handle("/health/", edda.HealthHandler(host))
	internal.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	internal.Handle("/edda/", http.StripPrefix("/edda", ui))
	return host.Run(ctx)
}
