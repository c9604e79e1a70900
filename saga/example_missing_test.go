package saga_test

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

type (
	ReserveSeat  struct{ Booking string }
	CancelSeat   struct{ Booking string }
	NothingToPay struct{ Booking string }
)

func (ReserveSeat) Kind() string  { return "seat.reserve" }
func (CancelSeat) Kind() string   { return "seat.cancel" }
func (NothingToPay) Kind() string { return "seat.nothing-to-pay" }

type Booking struct{}

func (*Booking) Reserve(*saga.Context, ReserveSeat) error { return nil }

func (*Booking) Cancel(ctx *saga.Context, _ CancelSeat) error {
	ctx.Complete()
	return nil
}

// notThere is called in place of the saga's handler. It has no instance, and may send.
func notThere(ctx *saga.Context, m CancelSeat) error {
	ctx.Publish(NothingToPay(m))
	return nil
}

func tellGuest(_ *bus.Context, m NothingToPay) error {
	fmt.Println("there is no booking", m.Booking)
	return nil
}

// A message for an instance that does not exist is answered.
func ExampleIfMissingDo() {
	bookings := saga.Define("booking", saga.Options{},
		saga.StartedBy(func(m ReserveSeat) string { return m.Booking }, (*Booking).Reserve),
		saga.Handles(func(m CancelSeat) string { return m.Booking }, (*Booking).Cancel, saga.IfMissingDo(notThere)))

	ctx, b, end := inMemory(bookings, bus.Handle(tellGuest)) // an endpoint, see package memory
	defer end()
	_, err := b.Send(ctx, CancelSeat{Booking: "7"})
	check(err)
	check(b.Advance(ctx, time.Minute)) // the message that starts the booking may still be on its way
	// Output: there is no booking 7
}
