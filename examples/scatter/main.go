package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/scatter/gather"
	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
)

const usage = `Scatter lets one saga send many requests and gather as many replies, once in each of five designs.

  go run ./examples/scatter [flags]

The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries.
The exit code is 0 when every run came to the right sum, 1 otherwise, and 2 for wrong flags.

Flags:
`

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	requests := 0
	return demo.Program{
		Name: "scatter", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&requests, "requests", 1000, "how `many` requests one run sends, at most 100000")
		},
		Check: func() error {
			if requests < 1 || requests > 100_000 {
				return fmt.Errorf("-requests %d: want 1 to 100000", requests)
			}
			return nil
		},
		Run: func(ctx context.Context) error {
			return demo.WithDatabase(ctx, "scatter", gather.Tables, func(d *demo.Database) error {
				return play(ctx, d, requests, out)
			})
		},
	}.Start(args, out, complaints)
}

// play runs each design once.
func play(ctx context.Context, d *demo.Database, requests int, out io.Writer) error {
	ended := make(chan struct{}, 1)
	b, err := bus.New(d.Pool, bus.Options{
		Schema: d.Edda, AutoInstall: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Events: func(e bus.Event) {
			if h, ok := e.(bus.Handled); ok && h.Info.Kind == (gather.Gathered{}).Kind() {
				ended <- struct{}{}
			}
		},
	})
	if err != nil {
		return err
	}
	host, err := endpoints(d, b)
	if err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	group := run.NewGroup(ctx)
	group.Go(host.Run)
	group.Go(func(ctx context.Context) error {
		defer group.Stop()
		for i, m := range designs(requests) {
			took, err := one(ctx, b, m, ended)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "%-10s %v\n", runs[i], took.Round(time.Millisecond))
		}
		return errors.Join(gather.CheckLeft(ctx, d.Pool, d.Edda, out),
			gather.Check(ctx, d.Pool, out, requests, runs...))
	})
	return group.Wait()
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

// endpoints are the desk of the sagas, the work, the items, and the table of results.
func endpoints(d *demo.Database, b *bus.Bus) (*edda.Host, error) {
	items, err := gather.NewItems(d.Edda)
	if err != nil {
		return nil, err
	}
	var runners []edda.Runner
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
	return edda.NewHost(runners...)
}
