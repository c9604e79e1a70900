package memory_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
)

type (
	bookTable struct{ Guest string }
	remind    struct{}
	callGuest struct{ Guest string }
)

func (bookTable) Kind() string { return "table.book" }
func (remind) Kind() string    { return "table.remind" }
func (callGuest) Kind() string { return "guest.call" }

// A saga waits for a day, a handler answers it, and all that takes no time.
func Example() {
	ctx := context.Background()
	b, err := memory.New(memory.Options{Start: time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	type booking struct{ Reminded bool }
	bookings := saga.Define("booking", saga.Options{},
		saga.StartedBy(func(m bookTable) string { return m.Guest },
			func(_ *booking, ctx *saga.Context, _ bookTable) error {
				ctx.Timeout(24*time.Hour, remind{})
				return nil
			}),
		saga.OnTimeout(func(s *booking, ctx *saga.Context, _ remind) error {
			s.Reminded = true
			ctx.Send(callGuest{ctx.Key()})
			return nil
		}))
	_, err = memory.NewEndpoint(b, "bookings", bus.EndpointOptions{}, bus.Saga(bookings))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = memory.NewEndpoint(b, "phone", bus.EndpointOptions{}, bus.Handle(
		func(ctx *bus.Context, m callGuest) error {
			fmt.Println("call", m.Guest, "at", ctx.Now().Format(time.DateTime))
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := b.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := b.Send(ctx, bookTable{"Ada"}); err != nil {
		fmt.Println(err)
	}
	if err := b.Advance(ctx, 24*time.Hour); err != nil {
		fmt.Println(err)
	}
	s, live, err := saga.StatesOf[booking](bookings).Read(ctx, b, "Ada")
	fmt.Println("live:", live, "reminded:", s.Reminded, err, stop())
	// Output:
	// call Ada at 2026-03-02 18:00:00
	// live: true reminded: true <nil> <nil>
}
