package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/saga"
)

// The messages. Each has a kind, and is JSON on its way.
type (
	PlaceOrder struct {
		Order string `json:"order"`
		Cents int    `json:"cents"`
	}
	ChargeCard struct {
		Cents int `json:"cents"`
	}
	CardCharged struct{}
	PaymentDue  struct{}
)

func (PlaceOrder) Kind() string  { return "order.place" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }
func (PaymentDue) Kind() string  { return "order.payment-due" }

// Order is the state of one order, a row in Postgres.
type Order struct {
	Cents int `json:"cents"`
}

// Place begins an order: it asks for the money, and waits for it a minute.
func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	o.Cents = m.Cents
	ctx.Send(ChargeCard{Cents: m.Cents})
	ctx.Timeout(time.Minute, PaymentDue{})
	return nil
}

// Charged gets the answer of the service.
func (o *Order) Charged(ctx *saga.Context, _ CardCharged) error {
	log.Printf("order %s: %d cents are paid", ctx.Key(), o.Cents)
	ctx.Complete()
	return nil
}

// Unpaid is called if the answer does not come.
func (o *Order) Unpaid(ctx *saga.Context, _ PaymentDue) error {
	log.Printf("order %s is cancelled", ctx.Key())
	ctx.Complete()
	return nil
}

// Orders says which message goes to which method, and to which order.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place),
	saga.OnReply((*Order).Charged),
	saga.OnTimeout((*Order).Unpaid))

// chargeCard is the service. It may call others: no transaction is open meanwhile. It may be called again after a
// failure, so give ctx.Info().ID to the bank as the key of the payment.
func chargeCard(ctx *bus.Context, _ ChargeCard) error {
	ctx.Reply(CardCharged{})
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run runs the shop until ctx ends, and places the orders that are named.
func run(ctx context.Context, names []string) error {
	pool, err := eddadev.Connect(ctx, "hello") // DATABASE_URL, or a Postgres that is started
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	if err != nil {
		return err
	}
	payments, err := bus.NewEndpoint(b, "payments", bus.EndpointOptions{}, bus.Handle(chargeCard))
	if err != nil {
		return err
	}
	return eddadev.Run(ctx, b, orders, payments, customer{b, names})
}

// customer places orders when the endpoints are there.
type customer struct {
	bus    *bus.Bus
	orders []string
}

func (c customer) Run(ctx context.Context) error {
	for _, name := range c.orders {
		if _, err := c.bus.Send(ctx, PlaceOrder{Order: name, Cents: 1990}); err != nil {
			return err
		}
	}
	return nil
}
