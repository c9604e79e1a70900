package memory_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/scheduler"
)

// check ends the example if err is not nil.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// atSix are options of a bus whose clock stands until Advance moves it.
var atSix = memory.Options{Start: time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC),
	Logger: slog.New(slog.DiscardHandler)}

// With a clock of its own, the bus delivers a message of tomorrow at once.
func ExampleNew() {
	ctx := context.Background()
	b, err := memory.New(atSix) // memory.Options{Start: …}
	check(err)
	call := func(ctx *bus.Context, m callGuest) error {
		fmt.Println("call", m.Guest, "at", ctx.Now().Format(time.TimeOnly))
		return nil
	}
	_, err = memory.NewEndpoint(b, "phone", bus.EndpointOptions{}, bus.Handle(call))
	check(err)
	stop, err := b.Start(ctx)
	check(err)
	_, err = b.Send(ctx, callGuest{"Ada"})
	check(err)
	check(b.Advance(ctx, time.Hour))
	check(stop())
	// Output: call Ada at 18:00:00
}

// An endpoint takes the parts of package bus, except parts with a transaction.
func ExampleNewEndpoint() {
	b, err := memory.New(atSix)
	check(err)
	call := func(*bus.Context, callGuest) error { return nil }
	phone, err := memory.NewEndpoint(b, "phone", bus.EndpointOptions{}, bus.Handle(call))
	check(err)
	fmt.Println(phone.Name())
	// Output: phone
}

// Manifests fire by the clock of the bus.
func ExampleNewScheduler() {
	ctx := context.Background()
	b, err := memory.New(atSix)
	check(err)
	call := func(ctx *bus.Context, m callGuest) error {
		fmt.Println("call", m.Guest, "at", ctx.Now().Format(time.DateTime))
		return nil
	}
	_, err = memory.NewEndpoint(b, "phone", bus.EndpointOptions{}, bus.Handle(call))
	check(err)
	_, err = memory.NewScheduler(b, scheduler.Manifest{Name: "call", When: scheduler.Cron("0 9 * * *", "UTC"),
		Message: callGuest{"Ada"}})
	check(err)
	stop, err := b.Start(ctx)
	check(err)
	check(b.Advance(ctx, 24*time.Hour))
	check(stop())
	// Output: call Ada at 2026-03-02 09:00:00
}

// A loop that runs once, because there is one process.
func ExampleNewSingleton() {
	ctx := context.Background()
	b, err := memory.New(atSix)
	check(err)
	begun := make(chan struct{})
	_, err = memory.NewSingleton(b, "rates", func(term scheduler.Term) error {
		fmt.Println("term", term.Epoch())
		close(begun)
		<-term.Done()
		return nil
	})
	check(err)
	stop, err := b.Start(ctx)
	check(err)
	<-begun
	check(stop())
	// Output: term 1
}
