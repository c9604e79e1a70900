package whereabouts_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// The example uses the pgxpool.Pool of a program, with the tables of Edda, and a saga.
var check, openPool, start = pgtest.Must, pgtest.Example, pgtest.Start

type Rent struct {
	Bike  string
	Hours int
}

func (Rent) Kind() string { return "bike.rent" }

type Rental struct{ Hours int }

func (r *Rental) Rent(_ *saga.Context, m Rent) error {
	r.Hours += m.Hours
	return nil
}

var Rentals = saga.Define("rental", saga.Options{},
	saga.StartedBy(func(m Rent) string { return m.Bike }, (*Rental).Rent))

// The versions of a saga instance, the oldest first, with their messages.
func ExampleReader_Timeline() {
	ctx, pool, end := openPool()
	defer end()
	handled := make(chan struct{})
	b, err := bus.New(pool, bus.Options{History: history.Options{Level: history.States},
		Events: func(e event.Event) {
			if _, ok := e.(event.Handled); ok {
				handled <- struct{}{}
			}
		}})
	check(err)
	rentals, err := bus.NewEndpoint(b, "rentals", bus.EndpointOptions{}, bus.Saga(Rentals))
	check(err)
	defer start(ctx, rentals)()
	for range 2 {
		_, err = b.Send(ctx, Rent{Bike: "7", Hours: 3})
		check(err)
		<-handled
	}
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	lives, err := operator.History().Lives(ctx, "rental", "7", 1) // the newest
	check(err)
	versions, _, err := operator.History().Timeline(ctx, lives[0], saga.ID{}, 20)
	check(err)
	for _, v := range versions {
		fmt.Println(v.Version, history.Diff(v.Before, v.State), v.Entries[0].Info.Kind)
	}
	// Output:
	// 1 {"Hours":3} bike.rent
	// 2 Hours: 3 → 6 bike.rent
}
