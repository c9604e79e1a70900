//go:build later

package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5/pgxpool"
)

// run makes up to fifty calls at a time.
func run(charge func(*bus.Context, Charge) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	b, err := bus.New(pool, bus.Options{})
	check(err)
	payments, err := bus.NewEndpoint(b, "payments", bus.EndpointOptions{Concurrency: 50}, bus.Handle(charge))
	check(err)
	host, err := edda.NewHost(pool, payments)
	check(err)
	check(host.Run(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
