package comparison

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// page order
// Order is the state of one order.
type Order struct {
	Cents int `json:"cents"`
}

// Place requests the charge, and sets its timeout.
func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	if !ctx.IsNew() {
		return nil // a second copy charges nothing
	}
	o.Cents = m.Cents
	ctx.Send(ChargeCard{Cents: m.Cents})
	ctx.Timeout(24*time.Hour, PaymentDue{})
	return nil
}

// Charged ends the order, and the timeout with it.
func (o *Order) Charged(ctx *saga.Context, _ CardCharged) error {
	ctx.Publish(OrderPaid{Order: ctx.Key()})
	ctx.Complete()
	return nil
}

// Unpaid ends the order when the time is over.
func (o *Order) Unpaid(ctx *saga.Context, _ PaymentDue) error {
	ctx.Publish(OrderCancelled{Order: ctx.Key()})
	ctx.Complete()
	return nil
}

// Orders maps each message to a method and to an order.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
	saga.OnReply((*Order).Charged),
	saga.OnTimeout((*Order).Unpaid))

// end
