package edda_test

import (
	"fmt"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/scheduler"
)

// The code between "page schedule" and "end" is shown in docs/guide/scheduler.md.

func Example_schedule() {
	ctx, pool := openMigratedShop()

	// page schedule
	b, err := bus.New(pool, bus.Options{Schema: schema, Events: tellFired})
	check(err)
	books, err := bus.NewEndpoint(b, "books", bus.EndpointOptions{}, bus.HandleTx(settle), bus.HandleTx(readRates))
	check(err)
	clock, err := scheduler.New(b, scheduler.Options{Owner: "shop"},
		scheduler.Manifest{
			Name: "settlement", Message: Settle{Currency: "NOK"},
			When:    scheduler.Cron("30 2 * * *", "Europe/Oslo"), // each night, also when the clocks change
			Misfire: scheduler.MisfireAll,                        // makes up for a night without a server
		},
		scheduler.Manifest{Name: "rates", When: scheduler.Every(5 * time.Minute), Message: ReadRates{}})
	check(err)
	host, err := edda.NewHost(books, clock) // the same on each server
	check(err)
	check(host.Install(ctx))
	go func() { ended <- host.Run(ctx) }()

	// end

	fmt.Println(<-handled)
	closeShop()
	// Output:
	// manifest rates fired, attempt 1
}
