package edda_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The code between "page" and "end" is shown in docs/guide/setup.md.

// page saga
type PlaceOrder struct{ ID, Email string }
type PaymentDue struct{}
type Order struct{ Email string } // the state of one order, stored as JSON

func (PlaceOrder) Kind() string { return "order.place" }
func (PaymentDue) Kind() string { return "order.payment-due" }

func (o *Order) Place(ctx *saga.Context, m PlaceOrder) error {
	o.Email = m.Email
	ctx.Timeout(payWithin, PaymentDue{}) // a row in Postgres: no restart loses it
	return nil
}
func (o *Order) Unpaid(ctx *saga.Context, _ PaymentDue) error { ctx.Complete(); return nil }

var Orders = saga.Define("order", saga.Options{}, saga.OnTimeout((*Order).Unpaid),
	saga.StartedBy(func(m PlaceOrder) string { return m.ID }, (*Order).Place))

func place(ctx context.Context, b *bus.Bus, tx pgx.Tx, m PlaceOrder) error {
	_, err := tx.Exec(ctx, "INSERT INTO orders (id, email) VALUES ($1, $2)", m.ID, m.Email)
	if err == nil {
		_, err = b.SendTx(ctx, tx, m) // the row and the message commit together, or neither does
	}
	return err
}

// end

func Example() {
	ctx, pool := openShop()

	// page install
	b, err := bus.New(pool, bus.Options{Schema: schema, Events: tell})
	check(err)
	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{Concurrency: 2}, bus.Saga(Orders))
	check(err)                                                          // err lists all faults of the definitions
	check(migrations.Up(ctx, pool, migrations.Options{Schema: schema})) // 1. the tables
	check(orders.Install(ctx))                                          // 2. the endpoint's queue, and its kinds
	go func() { ended <- orders.Run(ctx) }()                            // 3. until ctx ends and its batches have ended

	// end

	// page send
	check(b.InTx(ctx, func(tx pgx.Tx) error {
		return place(ctx, b, tx, PlaceOrder{ID: "7", Email: "snorri@example.org"})
	}))

	// end

	fmt.Println(<-handled)
	fmt.Println(<-handled)
	closeShop()
	// Output:
	// order/7 handled order.place
	// order/7 handled order.payment-due
}
