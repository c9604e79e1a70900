package scheduler_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// The same schedule on every server: each due time has one run, which ends when its message is handled.
func ExampleNew() {
	fired := make(chan string)
	ctx, b, end := openBooks(func(ctx *bus.Context, m Settle) error {
		fired <- ctx.Info().Firing.Manifest + " of " + m.Currency
		return nil
	})
	defer end()

	clock, err := scheduler.New(b, scheduler.Options{Owner: "shop"},
		scheduler.Manifest{Name: "settlement", Message: Settle{Currency: "NOK"},
			When:    scheduler.Cron("30 2 * * *", "Europe/Oslo"), // each night, also when the clocks change
			Misfire: scheduler.MisfireAll},                       // makes up for a night without a server
		scheduler.Manifest{Name: "rates", Message: Settle{Currency: "USD"}, When: scheduler.Every(5 * time.Minute)})
	check(err)
	defer start(ctx, clock)() // by an edda.Host beside the endpoints
	fmt.Println(<-fired)      // an Every fires at once
	// Output: rates of USD
}

// A program, or a page of it, uses a Store to read and change schedules.
func ExampleNewStore() {
	ctx, pool, end := openPool()
	defer end()
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{})
	check(err)
	check(store.Put(ctx, scheduler.Manifest{Name: "settlement", When: scheduler.Cron("30 2 * * *", "Europe/Oslo"),
		Message: Settle{Currency: "NOK"}}))
	m, err := store.Manifest(ctx, "settlement")
	check(err)
	due, err := store.Next(ctx, "settlement", 1)
	check(err)
	fmt.Println(m.Name, m.Kind, "at", due[0].In(time.UTC).Minute())
	// Output: settlement settlement.start at 30
}

// A paused manifest does not fire. After Resume its misfire policy decides about the due times in between.
func ExampleStore_Pause() {
	ctx, store, end := openStore() // with a manifest "settlement"
	defer end()
	check(store.Pause(ctx, "settlement", "the books are closed"))
	m, err := store.Manifest(ctx, "settlement")
	check(err)
	fmt.Println(m.Name, "is paused:", m.Paused.Reason) // m.Waits() explains in sentences why it does not fire
	check(store.Resume(ctx, "settlement"))
	// Output: settlement is paused: the books are closed
}

// Trigger queues a run of a manifest now, with a different message if one is given.
func ExampleStore_Trigger() {
	ctx, store, end := openStore()
	defer end()
	id, err := store.Trigger(ctx, "settlement", Settle{Currency: "SEK"}, scheduler.TriggerOptions{})
	check(err)
	run, err := store.RunOf(ctx, id)
	check(err)
	fmt.Println(run.Origin, run.State, string(run.Body))
	// Output: manual queued {"currency":"SEK"}
}

// A dead run holds its manifest until an operator retries or cancels it.
func ExampleStore_Retry() {
	rates, done := errors.New("there are no rates"), make(chan int)
	ctx, b, end := openBooks(func(ctx *bus.Context, _ Settle) error {
		if attempt := ctx.Info().Firing.Attempt; attempt > 1 {
			done <- attempt
			return nil
		}
		return saga.Permanent(rates)
	})
	defer end()
	pool, _ := b.Database()
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{})
	check(err)
	check(store.Put(ctx, scheduler.Manifest{Name: "settlement", When: scheduler.OnDemand(), Message: Settle{}}))
	clock, err := scheduler.New(b, scheduler.Options{Owner: "shop"})
	check(err)
	defer start(ctx, clock)()

	id, err := store.Trigger(ctx, "settlement", nil, scheduler.TriggerOptions{})
	check(err)
	<-runFailed
	run, err := store.RunOf(ctx, id)
	check(err)
	fmt.Println(run.State, "because", run.Error)
	check(store.Retry(ctx, id, "the rates are there now"))
	fmt.Println("done, with attempt", <-done)
	// Output:
	// dead because there are no rates
	// done, with attempt 2
}

// If the work of a run continues in a different program, the run ends when that program reports it.
func ExampleNewReports() {
	ctx, pool, end := openPool()
	defer end()
	reports, err := scheduler.NewReports(pool, "")
	check(err)
	var run saga.ID // of the Firing of a message, with its attempt: see package scheduler/remote
	err = reports.End(ctx, run, 1, nil)
	fmt.Println(err)
	// Output: end run 00000000-0000-0000-0000-000000000000, attempt 1: there is no such run
}

// An operator looks up the holder of a lease, and makes it resign, so that the next replica takes over.
func ExampleNewLeases() {
	ctx, pool, end := openPool()
	defer end()
	begun := make(chan struct{})
	refresh := func(term scheduler.Term) error {
		close(begun)
		<-term.Done()
		return nil
	}
	rates, err := scheduler.NewSingleton(pool, "rates", refresh, scheduler.SingletonOptions{Holder: "host-1"})
	check(err)
	stop := start(ctx, rates)
	<-begun
	leases, err := scheduler.NewLeases(pool, "")
	check(err)
	all, err := leases.List(ctx)
	check(err)
	for _, l := range all {
		fmt.Println(l.Name, "is held:", l.Held, "term", l.Epoch)
	}
	stop()
	err = leases.Resign(ctx, "singleton/rates")
	fmt.Println(err)
	// Output:
	// singleton/rates is held: true term 1
	// resign lease "singleton/rates": no process holds the lease
}
