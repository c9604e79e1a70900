package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/examples/scatter/gather"
	"github.com/edda-go/edda/saga"
)

func main() {
	requests := flag.Int("requests", 1000, "how `many` requests one run sends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *requests, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run runs each design once, and checks what came of it.
func run(ctx context.Context, requests int, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pool, err := eddadev.Connect(ctx, "scatter")
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, gather.Tables+"; TRUNCATE result"); err != nil {
		return err
	}
	ended := make(chan struct{}, 1)
	b, err := bus.New(pool, bus.Options{Events: func(e bus.Event) {
		if h, ok := e.(bus.Handled); ok && h.Info.Kind == (gather.Gathered{}).Kind() {
			ended <- struct{}{}
		}
	}})
	if err != nil {
		return err
	}
	runners, err := endpoints(b)
	if err != nil {
		return err
	}
	all := edda.RunnerFunc(func(ctx context.Context) error {
		defer stop()
		if err := play(ctx, b, requests, ended, out); err != nil {
			return err
		}
		return errors.Join(gather.CheckLeft(ctx, pool, schema, out), gather.Check(ctx, pool, out, requests, runs...))
	})
	return eddadev.Run(ctx, b, append(runners, all)...)
}

// play runs one design after another.
func play(ctx context.Context, b *bus.Bus, requests int, ended <-chan struct{}, out io.Writer) error {
	for i, m := range designs(requests) {
		took, err := one(ctx, b, m, ended)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%-10s %v\n", runs[i], took.Round(time.Millisecond))
	}
	return nil
}

// one sends a message, and waits until its run has ended.
func one(ctx context.Context, b *bus.Bus, m saga.Message, ended <-chan struct{}) (time.Duration, error) {
	begun := time.Now()
	if _, err := b.Send(ctx, m); err != nil {
		return 0, err
	}
	select {
	case <-ended:
		return time.Since(begun), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// runs are the names of the runs, by their designs.
var runs = []string{"flat", "tree", "chunks", "sequential", "append"}

func designs(requests int) (all []saga.Message) {
	for _, name := range runs[:4] {
		all = append(all, gather.Gather{Run: name, Design: name, Last: requests})
	}
	return append(all, gather.Collect{Run: "append", Requests: requests})
}

const schema = "edda"

// endpoints are the desk of the sagas, the work, the items, and the table of results.
func endpoints(b *bus.Bus) (runners []edda.Runner, err error) {
	items, err := gather.NewItems(schema)
	if err != nil {
		return nil, err
	}
	for name, parts := range map[string][]bus.Part{
		"desk":     {bus.Saga(gather.Saga(saga.Pessimistic)), bus.Saga(gather.CollectSaga(saga.Pessimistic))},
		"requests": {bus.HandleTx(gather.DoWork)},
		"items":    {bus.HandleTx(items.Keep), bus.HandleTx(items.Look)},
		"ledger":   {bus.HandleTx(gather.Enter)},
	} {
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{}, parts...)
		if err != nil {
			return nil, err
		}
		runners = append(runners, e)
	}
	return runners, nil
}
