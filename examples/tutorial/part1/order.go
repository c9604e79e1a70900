// page order

package main

import (
	"log"

	"github.com/edda-go/edda/saga"
)

// PlaceOrder is a message. It has a kind, and is JSON on its way.
type PlaceOrder struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

func (PlaceOrder) Kind() string { return "order.place" }

// Order is the state of one order: a row in Postgres, as JSON.
type Order struct {
	Cents int `json:"cents"`
}

// Place is called for each PlaceOrder.
func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	o.Cents = m.Cents
	log.Printf("order %s: placed, %d cents", ctx.Key(), o.Cents)
	return nil
}

// Orders says which message goes to which method, and to which order.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place))

// end
