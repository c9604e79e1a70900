package bus_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A row of the program and a message commit together. After an error neither is written.
func ExampleBus_InTx() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	check(b.InstallQueue(ctx, "bank", "card.charge")) // an endpoint handles it, perhaps in a different program
	err := b.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO public.booking VALUES ('7', 1990)`); err != nil {
			return err
		}
		if _, err := b.SendTx(ctx, tx, ChargeCard{Order: "7", Cents: 1990}); err != nil {
			return err
		}
		return errors.New("the customer is gone")
	})
	fmt.Println(err)
	fmt.Println("booked:", booked(ctx, b))
	// Output:
	// the customer is gone
	// booked: 0
}

// A program with a transaction of its own sends in it. Workers find the message at their next poll at the latest.
func ExampleBus_SendTx() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	check(b.InstallQueue(ctx, "bank", "card.charge"))
	pool, _ := b.Database()
	tx, err := pool.Begin(ctx)
	check(err)
	defer func() { _ = tx.Rollback(ctx) }()

	_, err = tx.Exec(ctx, `INSERT INTO public.booking VALUES ('7', 1990)`)
	check(err)
	sent, err := b.SendTx(ctx, tx, ChargeCard{Order: "7", Cents: 1990})
	check(err)
	check(tx.Commit(ctx)) // the row and the message, or neither
	fmt.Println("copies:", sent.Copies, "booked:", booked(ctx, b))
	// Output: copies: 1 booked: 1990
}

// A web handler follows a saga instance: its current version, each newer version, and its end.
func ExampleBus_Watch() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	payments, err := bus.NewEndpoint(b, "payments", bus.EndpointOptions{}, bus.Saga(Payments))
	check(err)
	defer start(ctx, payments)()

	states := saga.StatesOf[Payment](Payments)
	for seen, err := range b.Watch(ctx, Payments, "7", bus.WatchCursor{}) {
		check(err)
		switch seen.Status {
		case bus.InstanceAbsent: // not yet
			_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: 1990})
		case bus.InstanceLiving:
			p, bad := states.Decode(seen.Instance)
			check(bad)
			fmt.Println("version", seen.Instance.Version, "of", p.Cents, "cents")
			_, err = b.Send(ctx, CardCharged{Order: "7"})
		case bus.InstanceComplete:
			fmt.Println("paid")
		}
		check(err)
	}
	// Output:
	// version 1 of 1990 cents
	// paid
}

// A partitioned endpoint handles the messages of a key in order, and is balanced over all processes that run it.
func ExampleNewPartitioned() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	seen := make(chan int, 3)
	book := func(_ *bus.Context, _ pgx.Tx, m ChargeCard) error {
		seen <- m.Cents
		return nil
	}
	books, err := bus.NewPartitioned(b, "books", bus.PartitionOptions{Partitions: 2},
		bus.HandleTx(book, bus.KeyedBy(func(m ChargeCard) string { return m.Order })))
	check(err)
	defer start(ctx, books)()
	for _, cents := range []int{10, 20, 30} {
		_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: cents})
		check(err)
	}
	fmt.Println(<-seen, <-seen, <-seen)
	// Output: 10 20 30
}

// A relay publishes messages to a different system in their order, each at least once, and deletes accepted messages.
func ExampleNewRelay() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	given := make(chan string)
	forward := func(_ context.Context, messages []*saga.Delivery) []error {
		for _, m := range messages {
			given <- m.Info.Kind + " " + string(m.Body) // to a broker, with m.Info.ID against repetitions
		}
		return nil // all of them are accepted
	}
	relay, err := bus.NewRelay(b, "broker", outbox.RelayOptions{}, forward, "card.charged")
	check(err)
	defer start(ctx, relay)()
	_, err = b.Publish(ctx, CardCharged{Order: "7"})
	check(err)
	fmt.Println(<-given)
	// Output: card.charged {"order":"7"}
}

// At most two handlers of the endpoint run at a time, in all processes together. An operator can change that number
// while they run.
func ExampleEndpointOptions_clusterConcurrency() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	charge := func(*bus.Context, ChargeCard) error { return nil }
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{ClusterConcurrency: 2}, bus.Handle(charge))
	check(err)
	check(bank.Install(ctx))

	pool, _ := b.Database()
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	check(operator.Limits().Set(ctx, "bank", 5)) // or: edda limit set bank 5
	limit, err := operator.Limits().Get(ctx, "bank")
	check(err)
	fmt.Println("at most", limit.Limit)
	// Output: at most 5
}
