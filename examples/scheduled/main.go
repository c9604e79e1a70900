package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/scheduler"
)

//go:embed tables.sql
var tables string

func main() {
	night := flag.Duration("night", 10*time.Second, "how often it is night: whole seconds that divide a minute")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *night); err != nil {
		log.Fatal(err)
	}
}

// run runs the scheduler, and the endpoints for its messages and for the messages that follow. Any number of processes
// may run it: only one evaluates at a time.
func run(ctx context.Context, night time.Duration) error {
	pool, err := eddadev.Connect(ctx, "scheduled")
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	office, err1 := bus.NewEndpoint(b, "office", bus.EndpointOptions{}, bus.Saga(settlements),
		bus.HandleTx(enter), bus.HandleTx(report), bus.HandleTx(poll), bus.HandleTx(rates))
	far, err2 := bus.NewEndpoint(b, "bank", bus.EndpointOptions{}, bus.Handle(bank{takes: night / 5}.ask))
	clock, err3 := scheduler.New(b, scheduler.Options{Owner: owner, Groups: groups}, manifests(night)...)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	return eddadev.Run(ctx, b, office, far, clock)
}
