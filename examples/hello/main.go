package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/saga"
)

// Messages. Each has a kind, and is JSON on its way.
type PlaceOrder struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}
type ChargeCard struct {
	Cents int `json:"cents"`
}
type CardCharged struct{}
type PaymentDue struct{}

func (PlaceOrder) Kind() string  { return "order.place" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }
func (PaymentDue) Kind() string  { return "order.payment-due" }

type Order struct{ Cents int } // the state of one order: a row in Postgres

func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	if !ctx.IsNew() {
		return nil // a second copy charges nothing
	}
	o.Cents = m.Cents
	ctx.Send(ChargeCard{Cents: m.Cents})
	ctx.Timeout(time.Minute, PaymentDue{}) // no restart loses it
	return nil
}

func (o *Order) Charged(ctx *saga.Context, _ CardCharged) error {
	log.Printf("order %s: %d cents are paid", ctx.Key(), o.Cents)
	ctx.Complete()
	return nil
}

func (o *Order) Unpaid(ctx *saga.Context, _ PaymentDue) error { ctx.Complete(); return nil }

// Orders maps each message to a method and to an order. saga.Handles adds messages that do not start an order.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
	saga.OnReply((*Order).Charged),
	saga.OnTimeout((*Order).Unpaid))

// chargeCard is a service: no transaction is open while it calls the bank.
func chargeCard(ctx *bus.Context, _ ChargeCard) error {
	ctx.Reply(CardCharged{}, saga.Delay(10*time.Second)) // this bank is slow
	return nil
}

func run(ctx context.Context) error {
	pool, err := eddadev.Connect(ctx, "hello") // DATABASE_URL, or a Postgres that it starts
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	orders, err1 := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	payments, err2 := bus.NewEndpoint(b, "payments", bus.EndpointOptions{}, bus.Handle(chargeCard))
	if err := errors.Join(err1, err2); err != nil {
		return err // every fault of the definitions, at once
	}
	customer := edda.RunnerFunc(func(ctx context.Context) error {
		_, err := b.Send(ctx, PlaceOrder{Order: time.Now().Format("15:04:05"), Cents: 1990})
		return err
	})
	return eddadev.Run(ctx, b, orders, payments, customer)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
