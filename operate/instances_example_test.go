package operate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The parts that the example leaves out: a Postgres with orders 1 to 3 of a load test, and order 7, all of them alive.

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

func openOrders() (ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, end func()) {
	ctx, pool, drop := pgtest.Example()
	handled := make(chan struct{}, 4)
	b, err := bus.New(pool, bus.Options{Events: func(e event.Event) {
		if _, ok := e.(event.Handled); ok {
			handled <- struct{}{}
		}
	}})
	check(err)
	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	check(err)
	stop := pgtest.Start(ctx, orders)
	for _, key := range []string{"load-1", "load-2", "load-3", "7"} {
		_, err := b.Send(ctx, Place{Order: key, Cents: 19})
		check(err)
		<-handled
	}
	return ctx, pool, b, func() {
		stop()
		drop()
	}
}

// An operator looks at the selected instances, and ends them. Instances that began after Preview stay alive.
func ExampleInstances_EndAll() {
	ctx, pool, _, end := openOrders()
	defer end()
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	orders := operate.InstanceFilter{Saga: "order", Prefix: "load-"}
	found, err := operator.Instances().Preview(ctx, orders)
	check(err)
	fmt.Println(found.Count, "orders, the first is", found.First[0].Instance.Key)

	orders.Until = found.Until
	done, err := operator.Instances().EndAll(ctx, orders,
		operate.ManyOptions{Reason: "the load test", Definition: Orders})
	check(err)
	fmt.Println(done.Done, "have ended, the last was", done.Last)
	// Output:
	// 3 orders, the first is load-1
	// 3 have ended, the last was load-3
}

// An operator repairs a state. If the version has changed in the meantime, nothing is changed.
func ExampleInstances_Repair() {
	ctx, pool, b, end := openOrders() // order 7 has 19 cents, and should have 1990
	defer end()
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	order7 := operate.Target{Saga: "order", Key: "7", Version: 1, Definition: Orders,
		Reason: "euros were taken for cents"}
	_, repaired, err := operator.Instances().Repair(ctx, order7, []byte(`{"Cents":1990}`))
	check(err)
	fmt.Println("version", repaired.Version)
	_, _, err = operator.Instances().Repair(ctx, order7, []byte(`{"Cents":1990}`))
	fmt.Println("a second time:", errors.Is(err, operate.ErrVersion))
	order, _, err := saga.StatesOf[Order](Orders).Read(ctx, b, "7")
	check(err)
	fmt.Println(order.Cents, "cents")
	// Output:
	// version 2
	// a second time: true
	// 1990 cents
}
