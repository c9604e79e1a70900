package bus_test

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The examples use a Postgres with the tables of Edda, and these messages.
//
//	ctx, pool, end := openPool()   // the pgxpool.Pool of a program
//	check(err)                     // ends the example
//	stop := start(ctx, endpoint)   // installs the endpoint, and runs it until stop is called
var check, openPool, start = pgtest.Must, pgtest.Example, pgtest.Start

type (
	ChargeCard struct {
		Order string `json:"order"`
		Cents int    `json:"cents"`
	}
	CardCharged struct {
		Order string `json:"order"`
	}
	BillCard struct { // the kind of ChargeCard in an older release
		Order string `json:"order"`
		Euros int    `json:"euros"`
	}
)

func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }
func (BillCard) Kind() string    { return "card.bill" }

// Payment is the state of a saga: an instance for each order.
type Payment struct{ Cents int }

func (p *Payment) Charge(_ *saga.Context, m ChargeCard) error {
	p.Cents += m.Cents
	return nil
}

func (p *Payment) Charged(ctx *saga.Context, _ CardCharged) error {
	ctx.Complete()
	return nil
}

var Payments = saga.Define("payment", saga.Options{},
	saga.StartedBy(func(m ChargeCard) string { return m.Order }, (*Payment).Charge),
	saga.Handles(func(m CardCharged) string { return m.Order }, (*Payment).Charged))

// openBooks has a table of the program's own.
func openBooks() (ctx context.Context, b *bus.Bus, end func()) {
	ctx, pool, end := openPool()
	_, err := pool.Exec(ctx, `CREATE TABLE public.booking (of text, cents int)`)
	check(err)
	b, err = bus.New(pool, bus.Options{})
	check(err)
	return ctx, b, end
}

// booked returns the sum of all bookings.
func booked(ctx context.Context, b *bus.Bus) (cents int) {
	check(b.InTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(sum(cents), 0) FROM public.booking`).Scan(&cents)
	}))
	return cents
}
