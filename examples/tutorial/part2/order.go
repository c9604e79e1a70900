// page order

package main

import (
	"log"

	"github.com/edda-go/edda/saga"
)

// PlaceOrder starts an order.
type PlaceOrder struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// ChargeCard asks the payments for money, and CardCharged is the answer.
type ChargeCard struct {
	Cents int `json:"cents"`
}
type CardCharged struct {
	Cents   int    `json:"cents"`
	Receipt string `json:"receipt"` // of the bank
}

func (PlaceOrder) Kind() string  { return "order.place" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }

// Order is the state of one order: a row in Postgres, as JSON.
type Order struct {
	Cents int `json:"cents"`
}

// Place asks for the money.
func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	if !ctx.IsNew() {
		return nil // the customer has clicked twice
	}
	o.Cents = m.Cents
	ctx.Send(ChargeCard{Cents: m.Cents})
	return nil
}

// Charged is called with the answer.
func (o *Order) Charged(ctx *saga.Context, m CardCharged) error {
	log.Printf("order %s: %d cents are paid", ctx.Key(), m.Cents)
	ctx.Complete()
	return nil
}

// Orders says which message goes to which method, and to which order.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
	saga.OnReply((*Order).Charged))

// end
