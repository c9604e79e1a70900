package orders

import (
	"time"

	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/edda-go/edda/saga"
)

// PlaceOrder starts the saga. It comes from Service.Place, in this database.
type PlaceOrder struct {
	OrderID string
	Card    string
	Cents   int64
}

// OrderDeclined is an event of this service: the card was declined.
type OrderDeclined struct{ OrderID string }

// OrderDelayed is an event of this service: the payment takes long.
type OrderDelayed struct{ OrderID string }

// PaymentOverdue is the timeout.
type PaymentOverdue struct{}

// Kind names the message.
func (PlaceOrder) Kind() string { return "order.place" }

// Kind names the message.
func (OrderDeclined) Kind() string { return "order.declined" }

// Kind names the message.
func (OrderDelayed) Kind() string { return "order.delayed" }

// Kind names the message.
func (PaymentOverdue) Kind() string { return "order.payment-overdue" }

// Order is the state of an order that is not yet paid.
type Order struct{ Cents int64 }

// rules holds the settings of the saga.
type rules struct{ payWithin time.Duration }

// place requests the charge. It does not depend on the database of the endpoint that handles ChargeCard.
func (r rules) place(o *Order, ctx *saga.Context, m PlaceOrder) error {
	o.Cents = m.Cents
	ctx.Send(contract.ChargeCard(m))
	ctx.Timeout(r.payWithin, PaymentOverdue{}, saga.Named("payment"))
	return nil
}

func (o *Order) charged(ctx *saga.Context, m contract.CardCharged) error {
	ctx.Publish(contract.OrderPaid{OrderID: m.OrderID})
	ctx.Complete() // the timeout goes with it
	return nil
}

func (o *Order) declined(ctx *saga.Context, m contract.CardDeclined) error {
	ctx.Publish(OrderDeclined{OrderID: m.OrderID})
	ctx.Complete()
	return nil
}

// overdue notifies the buyer, and keeps waiting. It does not give the order up: only the other database records whether
// the card was charged, so this service must not decide it. See the README for how to give up.
func (r rules) overdue(_ *Order, ctx *saga.Context, _ PaymentOverdue) error {
	ctx.Publish(OrderDelayed{OrderID: ctx.Key()})
	ctx.Timeout(r.payWithin, PaymentOverdue{}, saga.Named("payment"))
	return nil
}

func define(r rules) *saga.Definition {
	return saga.Define("order", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m PlaceOrder) string { return m.OrderID }, r.place),
		saga.OnReply((*Order).charged),
		saga.OnReply((*Order).declined),
		saga.OnTimeout(r.overdue),
	)
}
