package saga_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

type (
	PlaceOrder  struct{ Order string }
	ChargeCard  struct{ Cents int }
	CardCharged struct{ Receipt string }
)

func (PlaceOrder) Kind() string  { return "order.place" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }

type Order struct{ Cents int }

func (o *Order) Place(ctx *saga.Context, _ PlaceOrder) error {
	o.Cents = 1990
	ctx.Send(ChargeCard{Cents: o.Cents})
	return nil
}

func (o *Order) Charged(ctx *saga.Context, m CardCharged) error {
	fmt.Println("order", ctx.Key(), "is paid, receipt", m.Receipt)
	ctx.Complete()
	return nil
}

// chargeCard is the service that charges cards. It has no order id: its answer carries the id of the instance.
func chargeCard(ctx *bus.Context, m ChargeCard) error {
	ctx.Reply(CardCharged{Receipt: fmt.Sprint("R", m.Cents)})
	return nil
}

// A saga sends a request to another endpoint, and gets an answer.
func ExampleOnReply() {
	orders := saga.Define("order", saga.Options{},
		saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
		saga.OnReply((*Order).Charged)) // without a key: the answer carries the id of the instance

	ctx, b, end := inMemory(orders, bus.Handle(chargeCard)) // an endpoint, see package memory
	defer end()
	_, err := b.Send(ctx, PlaceOrder{Order: "7"})
	check(err)
	check(b.Idle(ctx))
	// Output: order 7 is paid, receipt R1990
}
