package main

import (
	"cmp"
	"log"
	"time"

	"github.com/edda-go/edda/saga"
)

const (
	payWithin = 15 * time.Minute
	shipAfter = 5 * time.Second // until then the customer may think again
)

// euro is the currency of all orders that do not say another.
const euro = "EUR"

// Order is the state of one order: a row in Postgres, as JSON.
type Order struct {
	Cents    int    `json:"cents"`
	Currency string `json:"currency"` // new in version 2
	Paid     bool   `json:"paid"`
}

// OrderV1 is the state as older programs store it.
type OrderV1 struct {
	Cents int  `json:"cents"`
	Paid  bool `json:"paid"`
}

func orderFromV1(old OrderV1) (Order, error) {
	return Order{Cents: old.Cents, Currency: euro, Paid: old.Paid}, nil
}

// Place asks for the money, and sets the time for it.
func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	if !ctx.IsNew() {
		return nil // the customer has clicked twice
	}
	o.Cents, o.Currency = m.Cents, cmp.Or(m.Currency, euro)
	ctx.Send(ChargeCard{Cents: o.Cents, Currency: o.Currency})
	ctx.Timeout(payWithin, PaymentDue{}, saga.Named("payment"))
	return nil
}

// Charged is called with the answer. The time for the payment is over, and that until the shipping begins.
func (o *Order) Charged(ctx *saga.Context, m CardCharged) error {
	o.Paid = true
	log.Printf("order %s: %d cents are paid, in %s", ctx.Key(), m.Cents, o.Currency)
	ctx.CancelTimeout("payment")
	ctx.Timeout(shipAfter, ShippingDue{}, saga.Named("shipping"))
	return nil
}

// Cancel is called if the customer thinks again before the shipping.
func (o *Order) Cancel(ctx *saga.Context, _ CancelOrder) error {
	log.Printf("order %s: cancelled by the customer", ctx.Key())
	if o.Paid {
		ctx.Send(RefundCard{Cents: o.Cents, Currency: o.Currency})
	}
	ctx.Complete()
	return nil
}

// Unpaid is called if no money came in time.
func (o *Order) Unpaid(ctx *saga.Context, _ PaymentDue) error {
	log.Printf("order %s: not paid, and cancelled", ctx.Key())
	ctx.Complete()
	return nil
}

// Ship ends the order.
func (o *Order) Ship(ctx *saga.Context, _ ShippingDue) error {
	log.Printf("order %s: shipped", ctx.Key())
	ctx.Complete()
	return nil
}

// tooLate gives money back that came after the end of its order.
func tooLate(ctx *saga.Context, m CardCharged) error {
	ctx.Send(RefundCard{Cents: m.Cents, Currency: cmp.Or(m.Currency, euro)})
	return nil
}

// Orders says which message goes to which method, and to which order.
var Orders = saga.Define("order", saga.Options{StateVersion: 2},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
	saga.Handles(func(m CancelOrder) string { return m.Order }, (*Order).Cancel),
	saga.OnReply((*Order).Charged, saga.IfMissingDo(tooLate)),
	saga.OnTimeout((*Order).Unpaid),
	saga.OnTimeout((*Order).Ship),
	saga.Upcast(1, orderFromV1))
