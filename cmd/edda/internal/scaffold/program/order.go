package main

import (
	"log"
	"time"

	"github.com/edda-go/edda/saga"
)

const payWithin = time.Minute

// Order is the state of one order: a row in Postgres, as JSON.
type Order struct {
	Cents   int    `json:"cents"`
	Receipt string `json:"receipt"` // "" until it is paid
}

// Place requests the money.
func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	if !ctx.IsNew() {
		return nil // the customer has clicked twice
	}
	o.Cents = m.Cents
	ctx.Send(ChargeCard{Cents: m.Cents})
	ctx.Timeout(payWithin, PaymentDue{}) // no restart loses it
	return nil
}

// Charged is called with the answer.
func (o *Order) Charged(ctx *saga.Context, m CardCharged) error {
	o.Receipt = m.Receipt
	log.Printf("order %s: %d cents are paid", ctx.Key(), o.Cents)
	ctx.Complete() // and its timeout is cancelled
	return nil
}

// GiveUp is called if no answer came in time.
func (o *Order) GiveUp(ctx *saga.Context, _ PaymentDue) error {
	log.Printf("order %s: not paid within %v", ctx.Key(), payWithin)
	ctx.Complete()
	return nil
}

// Orders assigns each kind of message to a method, and each message to an order.
var Orders = saga.Define("order", saga.Options{Remember: 24 * time.Hour}, // after it is complete
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
	saga.OnReply((*Order).Charged),
	saga.OnTimeout((*Order).GiveUp))
