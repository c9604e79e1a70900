package bus_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A bus is a pool and a schema. It does no I/O, and needs no handlers to send.
func ExampleNew() {
	ctx, pool, end := openPool() // the pgxpool.Pool of a program
	defer end()

	b, err := bus.New(pool, bus.Options{})
	check(err)
	sent, err := b.Publish(ctx, CardCharged{Order: "7"}) // an event, which no endpoint handles here
	check(err)
	fmt.Println("copies:", sent.Copies)
	// Output: copies: 0
}

// An endpoint is a queue with the handlers of its messages. Here it has one saga.
func ExampleNewEndpoint() {
	ctx, pool, end := openPool()
	defer end()
	handled := make(chan string)
	b, err := bus.New(pool, bus.Options{Events: func(e event.Event) {
		if e, ok := e.(event.Handled); ok {
			handled <- e.Saga + "/" + e.Key + " handled " + e.Info.Kind
		}
	}})
	check(err)

	payments, err := bus.NewEndpoint(b, "payments", bus.EndpointOptions{}, bus.Saga(Payments))
	check(err)                   // all faults of the definitions at once
	defer start(ctx, payments)() // payments.Install once for each release, then payments.Run
	_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: 1990})
	check(err)
	fmt.Println(<-handled)
	// Output: payment/7 handled card.charge
}

// A leased handler calls another system while no transaction is open. The messages that it sends are written together
// with the end of its message.
func ExampleHandle() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	told := make(chan string)
	charge := func(ctx *bus.Context, m ChargeCard) error {
		fmt.Printf("the bank charges %d cents\n", m.Cents) // with ctx.Info().ID as the idempotency key
		ctx.Publish(CardCharged{Order: m.Order})
		return nil
	}
	tell := func(_ *bus.Context, m CardCharged) error {
		told <- m.Order
		return nil
	}
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{}, bus.Handle(charge))
	check(err)
	letters, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, bus.Handle(tell))
	check(err)
	defer start(ctx, letters)()
	defer start(ctx, bank)()
	_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: 1990})
	check(err)
	fmt.Println("order", <-told, "is paid")
	// Output:
	// the bank charges 1990 cents
	// order 7 is paid
}

// A handler with a transaction writes rows of the program: they commit with the end of the message, or not at all.
func ExampleHandleTx() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	charge := func(ctx *bus.Context, tx pgx.Tx, m ChargeCard) error {
		_, err := tx.Exec(ctx, `INSERT INTO public.booking VALUES ($1, $2)`, m.Order, m.Cents)
		ctx.Publish(CardCharged{Order: m.Order}) // goes out with the commit
		return err
	}
	told := make(chan string)
	tell := func(_ *bus.Context, m CardCharged) error {
		told <- m.Order
		return nil
	}
	books, err := bus.NewEndpoint(b, "books", bus.EndpointOptions{}, bus.HandleTx(charge))
	check(err)
	letters, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, bus.Handle(tell))
	check(err)
	defer start(ctx, letters)()
	defer start(ctx, books)()
	_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: 1990})
	check(err)
	fmt.Println("order", <-told, "is paid, and in the books:", booked(ctx, b))
	// Output: order 7 is paid, and in the books: 1990
}

// A program without the Go types of its messages handles their bytes.
func ExampleHandleRaw() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	seen := make(chan string)
	archive := func(_ *bus.Context, d *saga.Delivery) error {
		seen <- d.Info.Kind + " " + string(d.Body)
		return nil
	}
	archives, err := bus.NewEndpoint(b, "archive", bus.EndpointOptions{}, bus.HandleRaw(archive, "card.charge"))
	check(err)
	defer start(ctx, archives)()
	_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: 1990})
	check(err)
	fmt.Println(<-seen)
	// Output: card.charge {"order":"7","cents":1990}
}

// Middleware is around every handler of an endpoint, the first outermost.
func ExampleUse() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	done := make(chan struct{})
	log := func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			fmt.Println("before", d.Info.Kind)
			err := next(ctx, d)
			fmt.Println("after it:", err)
			close(done)
			return err
		}
	}
	charge := func(_ *bus.Context, m ChargeCard) error {
		fmt.Println("order", m.Order)
		return nil
	}
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{}, bus.Use(log), bus.Handle(charge))
	check(err)
	defer start(ctx, bank)()
	_, err = b.Send(ctx, ChargeCard{Order: "7"})
	check(err)
	<-done
	// Output:
	// before card.charge
	// order 7
	// after it: <nil>
}

// Messages of one order are handled one after another, in all processes together. Messages of other orders run in
// parallel.
func ExampleKeyedBy() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	seen := make(chan int)
	charge := func(_ *bus.Context, m ChargeCard) error {
		seen <- m.Cents
		return nil
	}
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{Ordered: bus.Strict},
		bus.Handle(charge, bus.KeyedBy(func(m ChargeCard) string { return m.Order })))
	check(err)
	defer start(ctx, bank)()
	for _, cents := range []int{10, 20, 30} {
		_, err = b.Send(ctx, ChargeCard{Order: "7", Cents: cents})
		check(err)
	}
	fmt.Println(<-seen, <-seen, <-seen)
	// Output: 10 20 30
}

// Messages of an older release, which may still be in a queue, are converted to a kind that the endpoint handles.
func ExampleAccept() {
	ctx, b, end := openBooks() // a bus.Bus, in a database with a table of bookings
	defer end()
	seen := make(chan int)
	charge := func(_ *bus.Context, m ChargeCard) error {
		seen <- m.Cents
		return nil
	}
	inCents := func(old BillCard) (ChargeCard, error) {
		return ChargeCard{Order: old.Order, Cents: old.Euros * 100}, nil
	}
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{}, bus.Handle(charge), bus.Accept(inCents))
	check(err)
	defer start(ctx, bank)()
	_, err = b.Send(ctx, BillCard{Order: "7", Euros: 19})
	check(err)
	fmt.Println(<-seen, "cents")
	// Output: 1900 cents
}
