package bulk_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/bulk"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The parts that the example leaves out: a Postgres with orders 1 to 3 of a load test, and order 7, all of them alive.

var check = pgtest.Must

type Place struct{ Order string }

func (Place) Kind() string { return "order.place" }

type Order struct{}

func (*Order) Place(*saga.Context, Place) error { return nil }

var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m Place) string { return m.Order }, (*Order).Place))

func openOrders() (ctx context.Context, pool *pgxpool.Pool, end func()) {
	ctx, pool, drop := pgtest.Example()
	handled := make(chan struct{}, 4)
	b, err := bus.New(pool, bus.Options{Events: func(e bus.Event) {
		if _, ok := e.(bus.Handled); ok {
			handled <- struct{}{}
		}
	}})
	check(err)
	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	check(err)
	stop := pgtest.Start(ctx, orders)
	for _, key := range []string{"load-1", "load-2", "load-3", "7"} {
		_, err := b.Send(ctx, Place{Order: key})
		check(err)
		<-handled
	}
	return ctx, pool, func() {
		stop()
		drop()
	}
}

// An operator looks at the selected instances, and ends them. Instances that began after Look stay alive.
func ExampleNew() {
	ctx, pool, end := openOrders()
	defer end()
	operator, err := bulk.New(pool, bulk.Options{})
	check(err)
	orders := bulk.Filter{Saga: "order", Prefix: "load-"}
	look, err := operator.Look(ctx, orders)
	check(err)
	fmt.Println(look.Count, "orders, the first is", look.First[0].Instance.Key)

	orders.Until = look.Until
	done, err := operator.End(ctx, orders, bulk.End{Reason: "the load test", Definition: Orders}, nil)
	check(err)
	fmt.Println(done.Done, "have ended, the last was", done.Last)
	// Output:
	// 3 orders, the first is load-1
	// 3 have ended, the last was load-3
}
