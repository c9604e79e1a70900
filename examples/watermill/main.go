package main

import (
	"context"
	"flag"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
)

func main() {
	rooms := flag.Int("rooms", 100, "how many rooms are booked")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *rooms, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run takes the tour, and ends with it.
func run(ctx context.Context, rooms int, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pool, err := eddadev.Connect(ctx, "watermill")
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	t := &tour{bus: b, rooms: rooms, out: out, seen: map[string]int{}, done: make(chan struct{})}
	return eddadev.Run(ctx, b, edda.RunnerFunc(func(ctx context.Context) error {
		defer stop()
		return t.run(ctx)
	}))
}
