package instances_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/instances"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The parts that the example leaves out: a Postgres with one living order.

var check = pgtest.Must

type Place struct {
	Order string
	Cents int
}

func (Place) Kind() string { return "order.place" }

type Order struct{ Cents int }

func (o *Order) Place(_ *saga.Context, m Place) error {
	o.Cents = m.Cents
	return nil
}

var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m Place) string { return m.Order }, (*Order).Place))

func openOrder() (ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, end func()) {
	ctx, pool, drop := pgtest.Example()
	handled := make(chan struct{}, 1)
	b, err := bus.New(pool, bus.Options{Events: func(e bus.Event) {
		if _, ok := e.(bus.Handled); ok {
			handled <- struct{}{}
		}
	}})
	check(err)
	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	check(err)
	stop := pgtest.Start(ctx, orders)
	_, err = b.Send(ctx, Place{Order: "7", Cents: 19})
	check(err)
	<-handled
	return ctx, pool, b, func() {
		stop()
		drop()
	}
}

// An operator repairs a state. If the version has changed in the meantime, nothing is changed.
func ExampleNew() {
	ctx, pool, b, end := openOrder() // order 7 has 19 cents, and should have 1990
	defer end()
	operator, err := instances.New(pool, instances.Options{})
	check(err)
	repair := instances.Repair{Saga: "order", Key: "7", Version: 1, State: []byte(`{"Cents":1990}`), Definition: Orders,
		Reason: "euros were taken for cents"}
	done, err := operator.Repair(ctx, repair)
	check(err)
	fmt.Println("version", done.Version)
	_, err = operator.Repair(ctx, repair)
	fmt.Println("a second time:", errors.Is(err, instances.ErrVersion))
	order, _, err := saga.StatesOf[Order](Orders).Read(ctx, b, "7")
	check(err)
	fmt.Println(order.Cents, "cents")
	// Output:
	// version 2
	// a second time: true
	// 1990 cents
}
