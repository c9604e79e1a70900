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

// Book requests an entry in the books. The answer is Booked.
type Book struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// Booked answers Book.
type Booked struct{}

// Kind names the message.
func (PlaceOrder) Kind() string { return "order.place" }

// Kind names the message.
func (Book) Kind() string { return "order.book" }

// Kind names the message.
func (Booked) Kind() string { return "order.booked" }

// Order is the state of one order.
type Order struct{ Cents int }

func (o *Order) place(ctx *saga.Context, m PlaceOrder) error {
	o.Cents = m.Cents
	ctx.Send(Book(m))
	return nil
}

func (o *Order) booked(ctx *saga.Context, _ Booked) error {
	log.Printf("order %s: %d cents are booked", ctx.Key(), o.Cents)
	ctx.Complete()
	return nil
}

// Orders is the saga. It does not depend on the bus that runs it.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).place),
	saga.OnReply((*Order).booked))
